"""The memory of an answer until it is sent, and the names that masks see."""

from __future__ import annotations

from typing import Any

import pyarrow.compute as pc

from broker_core import TopicListingResult
from broker_core.listing.listing import Listing
from broker_core.memory.estimates import INITIAL_SIZE
from broker_core.names import Mode
from broker_core.pipeline import Trace
from tests.support.pipelines import FEW, NAMES, NAMESPACE, made, names, request
from tests.support.plugin_answers import answering
from tests.support.plugins import PluginOf


async def test_a_slice_takes_no_heap_once_its_size_is_known() -> None:
    async with made() as m:
        first = Trace()
        answer = await m.pipeline.answer(request(), first)
        assert first.permits == {"estimate": INITIAL_SIZE, "held": 0}
        assert m.permits.heap.acquired == 0
        second = Trace()
        await m.pipeline.answer(request(), second)
        assert second.permits == {"estimate": 0, "held": 0}
        answer.release()


async def test_scattered_rows_take_heap_until_they_are_sent() -> None:
    async with made() as m:
        answer = await m.ask(pattern=".*[37]")
        assert answer.selection is not None
        assert m.permits.heap.acquired == answer.selection.heap_bytes > 4 * len(answer.selection)
        answer.release()
        trace = Trace()
        (await m.pipeline.answer(request(pattern=".*[37]"), trace)).release()
        assert trace.permits["estimate"] == trace.permits["held"] > 0


async def test_names_of_a_plugin_take_heap_and_a_listing_of_its_own_does_not() -> None:
    listing = Listing.from_names(NAMESPACE, Mode.PERSISTENT, NAMES)
    for topics, owned, takes in ((NAMES, False, True), (listing, False, False), (listing, True, True)):
        result = TopicListingResult.success(topics, owned=owned)
        plugin = answering(result)
        async with made(plugins={"p": plugin}) as m:
            answer = await m.ask()
            assert (m.permits.heap.acquired > answer.fields_size) is takes
            assert names(answer) == sorted(NAMES)


async def test_a_kept_answer_takes_heap_only_while_it_is_built() -> None:
    plugin = PluginOf(list_topics=lambda: TopicListingResult.success(NAMES, version=1))
    async with made(plugins={"p": plugin}) as m:
        for _ in range(2):
            answer = await m.ask()
            assert m.permits.heap.acquired == 0
            assert m.permits.snapshots.acquired > 0
            answer.release()


async def test_an_answer_of_few_names_takes_little() -> None:
    plugin = PluginOf(list_topics=lambda: TopicListingResult.success(FEW))
    async with made(plugins={"p": plugin}) as m:
        answer = await m.ask()
        assert 0 < m.permits.heap.acquired < 10_000
        answer.release()


async def test_the_column_of_names_for_masks_takes_heap() -> None:
    seen: list[int] = []

    async def broker_core_visible(topics: Any) -> Any:
        seen.append(m.permits.heap.acquired)
        return pc.starts_with(topics, "persistent://t/n/0")

    async with made(plugins={"m": PluginOf(visible=broker_core_visible)}) as m:
        answer = await m.ask()
        assert seen[0] > sum(map(len, NAMES))
        assert m.permits.heap.acquired == 0  # what is left is a slice
        assert len(names(answer)) == 2858
