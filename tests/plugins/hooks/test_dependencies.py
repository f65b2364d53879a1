"""Dependencies of a plugin: declared ones, those found while it runs, and versions, each asked for once a question."""

from __future__ import annotations

from typing import Any

import pytest
from structlog.testing import capture_logs

from broker_core import Asker, TopicListingResult
from broker_core.plugins import Dispatcher, PluginRegistry
from broker_core.plugins.hooks.dependencies import DeclaredDependencies, KnownVersions, check_version
from tests.support.plugins import PluginOf, asked, loaded


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


def words(*declared: str) -> DeclaredDependencies:
    return DeclaredDependencies([loaded(PluginOf(depends_on=lambda: set(declared)))])


def test_words_only_become_more() -> None:
    of = words("pattern")
    assert of.of("p") == {"pattern"}
    assert frozenset(of._added["p"]) == frozenset()
    of.add("p", {"principal", "pattern"})
    of.add("p", {"client"})
    assert of.of("p") == {"pattern", "principal", "client"}
    assert frozenset(of._added["p"]) == {"principal", "client"}


def test_one_property_adds_nothing_to_all_of_them() -> None:
    of = words("properties")
    of.add("p", {"property:region"})
    assert frozenset(of._added["p"]) == frozenset()


def test_who_does_not_declare_the_principal_and_reads_it_is_told_once() -> None:
    of = words("properties")
    request = asked(asker=Asker("alice", "bob"))
    with capture_logs() as logs:
        told = of.request_for(request, "p")
        assert told.topics_pattern is None
        assert of.of("p") == {"properties"}, "nothing of the asker was read"
        assert told.asker.original_principal == "bob"
        assert of.request_for(request, "p").asker.role == "alice"
    assert [each["word"] for each in logs] == ["principal"]
    assert of.of("p") == {"properties", "principal"}
    assert of.request_for(request, "p") is request


def test_who_declares_the_client_and_reads_the_address_is_told_once() -> None:
    of = words("client", "principal")
    request = asked(asker=Asker(remote_address="192.0.2.7:1"))
    with capture_logs() as logs:
        for _ in range(2):
            told = of.request_for(request, "p")
            assert told.asker.client_version == ""
            assert told.asker.host == "192.0.2.7"
    assert [each["word"] for each in logs] == ["address"]
    assert of.of("p") == {"client", "principal", "address"}
    assert of.request_for(request, "p") is request
    assert words("client", "principal", "address").request_for(request, "p") is request
    assert words("pattern", "principal").request_for(request, "p") is request
