"""Masks cached by version: called once for the same names and asker, never reused after a change."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow.compute as pc
import pytest

from broker_core import Asker, ListingRequest, Mode, TopicListingResult
from broker_core.errors import ListingFailed
from broker_core.pipeline import Trace
from tests.support.memory_lister import MemoryLister
from tests.support.pipelines import NAMES, made, names, request
from tests.support.plugins import PluginOf


class Mask:
    """Shows the names that contain ``shown``, or the role of the asker."""

    def __init__(self, *on: str, version: Any = "1") -> None:
        self.version = version
        self.shown: str | None = "/3-"
        self.asked = 0
        self.on = on

    def plugin(self) -> PluginOf:
        def visible(request: ListingRequest, topics: Any) -> Any:
            self.asked += 1
            return pc.match_substring(topics, self.shown or f"/{request.asker.role}-")

        def version() -> Any:
            if isinstance(self.version, BaseException):
                raise self.version
            return self.version

        return PluginOf(visible=visible, version=version, depends_on=lambda: set(self.on))


def lister() -> MemoryLister:
    return MemoryLister(NAMES, at_once=False)


def expected(part: str) -> list[str]:
    return sorted(name for name in NAMES if part in name)


async def test_the_same_names_at_the_same_version_are_masked_once() -> None:
    mask = Mask()
    async with made(lister(), {"m": mask.plugin()}) as m:
        for _ in range(3):
            assert sorted(names(await m.ask())) == expected("/3-")
            assert names(await m.ask(pattern="t/n/4-.*")) == []
        assert mask.asked == 2
        mask.version, mask.shown = "2", "/4-"
        assert sorted(names(await m.ask())) == expected("/4-")
        assert sorted(names(await m.ask(pattern="t/n/4-.*"))) == expected("/4-")
        trace = Trace()
        answer = await m.pipeline.answer(request(), trace)
        assert not (await m.ask(topics_hash=answer.topics_hash)).changed
        answer.release()
        assert [(step.plugin, step.kept, step.version) for step in trace.masks] == [("m", True, "2")]
        assert trace.visible == answer.topics
        assert mask.asked == 4


@pytest.mark.parametrize("version", [None, "1"])
async def test_it_is_kept_for_whom_it_depends_on_and_only_by_a_version(version: str | None) -> None:
    mask = Mask("principal", version=version)
    mask.shown = None
    async with made(lister(), {"m": mask.plugin()}) as m:
        for role in ("1", "2", "1", "2"):
            assert sorted(names(await m.ask(asker=Asker(role=role)))) == expected(f"/{role}-")
    assert mask.asked == (4 if version is None else 2)


async def test_one_mask_without_a_version_is_enough_to_ask_all() -> None:
    one, other = Mask(), Mask(version=None)
    async with made(lister(), {"one": one.plugin(), "other": other.plugin()}) as m:
        for _ in range(2):
            assert sorted(names(await m.ask())) == expected("/3-")
    assert (one.asked, other.asked) == (2, 2)


async def test_other_names_are_masked_anew() -> None:
    mask, listing = Mask(), lister()
    async with made(listing, {"m": mask.plugin()}) as m:
        assert sorted(names(await m.ask())) == expected("/3-")
        listing.names.append("persistent://t/n/3-new")
        listing._listings.clear()
        assert len(names(await m.ask())) == len(expected("/3-")) + 1
        assert names(await m.ask(mode=Mode.NON_PERSISTENT)) == []
    assert mask.asked == 2


async def test_masks_that_changed_are_asked_again() -> None:
    mask = Mask()
    async with made(lister(), {"m": mask.plugin()}) as m:
        names(await m.ask())
        mask.shown = "/4-"  # under the same version, and told
        m.pipeline.changes.announce(request().namespace)
        assert sorted(names(await m.ask())) == expected("/4-")


async def test_a_version_that_fails_hides_everything() -> None:
    mask = Mask(version=OSError("away"))
    async with made(lister(), {"m": mask.plugin()}, tables={"m": {"on_failure": "next"}}) as m:
        with pytest.raises(ListingFailed, match="plugin 'm' failed: OSError"):
            await m.ask()
    assert mask.asked == 0


async def test_a_plugin_that_lists_and_masks_tells_its_version_once_for_both() -> None:
    told = masked = listed = 0

    def version() -> str:
        nonlocal told
        told += 1
        return "1"

    def list_topics() -> Any:
        nonlocal listed
        listed += 1
        return TopicListingResult.success(NAMES)

    def visible(topics: Any) -> Any:
        nonlocal masked
        masked += 1
        return np.arange(len(topics)) % 2 == 0

    plugin = PluginOf(version=version, list_topics=list_topics, visible=visible, depends_on=lambda: ())
    async with made(lister(), {"p": plugin}) as m:
        for _ in range(3):
            assert len(names(await m.ask())) == len(NAMES) // 2
    # The listing that is built for the first answer is kept with it.
    assert (told, listed, masked) == (5, 1, 1)  # and once more after each work
