"""The version hook: called once for each question, and checked."""

from __future__ import annotations

from typing import Any

import pytest

from broker_core import TopicListingResult
from broker_core.plugins import Dispatcher, PluginRegistry
from broker_core.plugins.hooks.versions import KnownVersions, check_version
from tests.support.plugins import PluginOf, asked


def telling(*versions: str | None) -> tuple[Dispatcher, list[str]]:
    """Plugins ``p0``, ``p1`` ... that give these versions; and the list of those that were asked."""
    seen: list[str] = []

    def of(number: int, version: str | None) -> Any:
        async def broker_core_version() -> str | None:
            seen.append(f"p{number}")
            return version

        return PluginOf(version=broker_core_version, list_topics=lambda: None)

    given = {f"p{number}": of(number, version) for number, version in enumerate(versions)}
    return Dispatcher(PluginRegistry.load(given=given | {"silent": PluginOf(list_topics=lambda: None)})), seen


async def test_a_plugin_is_asked_once_for_a_question() -> None:
    dispatcher, seen = telling("7", None)
    told: KnownVersions = {}
    for _ in range(2):
        assert await dispatcher.version_hook.of(asked(), "p0", told) == "7"
        assert await dispatcher.version_hook.of(asked(), "p1", told) is None
        assert await dispatcher.version_hook.of(asked(), "silent", told) is None
    assert seen == ["p0", "p1"]
    assert told == {"p0": "7", "p1": None}


async def test_an_answer_that_says_its_version_needs_no_second_look() -> None:
    dispatcher, seen = telling("7")
    assert await dispatcher.version_hook.still(
        asked(), "p0", "7", TopicListingResult.success([], version="7")
    )
    assert seen == []
    assert await dispatcher.version_hook.still(
        asked(), "p0", "7", TopicListingResult.success([], version="6")
    )
    assert not await dispatcher.version_hook.still(asked(), "p0", "6", TopicListingResult.success([]))
    assert seen == ["p0", "p0"]


async def test_all_of_them_or_none() -> None:
    dispatcher, _ = telling("7", "8", None)
    assert await dispatcher.version_hook.of_all(asked(), ["p0", "p1"], {}) == ("7", "8")
    assert await dispatcher.version_hook.of_all(asked(), ["p0", "p2"], {}) is None
    assert await dispatcher.version_hook.of_all(asked(), ["p0", "silent"], {}) is None


def test_versions() -> None:
    assert check_version("7", asked()) == ("7", "version")
    assert check_version(None, asked()) == (None, "none")
    for wrong in (7, b"7", True, type("Text", (str,), {})("7")):
        with pytest.raises(TypeError, match=r"write str\(version\)"):
            check_version(wrong, asked())
    with pytest.raises(ValueError, match="more than 1024: give a hash of it"):
        check_version("x" * 1025, asked())
