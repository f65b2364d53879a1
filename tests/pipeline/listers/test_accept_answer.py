"""Accepting a lister's answer: checked, built within reserved memory, freed when the request fails."""

from __future__ import annotations

import asyncio
import gc
import importlib
import random
import sys
import tracemalloc
import weakref
from typing import Any

import pyarrow as pa
import pytest

from broker_core import ListingRequest, TopicListingResult
from broker_core.errors import ListingFailed, ServerError
from broker_core.listing.listing import Listing
from broker_core.memory.ended_frames import let_go_of_cancelled
from broker_core.pipeline import PipelineOptions, Trace
from broker_core.pipeline.listers.answer_store import AnswerStore
from broker_core.settings import LimitsSettings, PatternsSettings
from tests.support.clock import AGES, time_passes
from tests.support.eventually import eventually
from tests.support.memory_lister import MemoryLister
from tests.support.pipelines import FEW, NAMES, made, names, request
from tests.support.plugins import PluginOf

#: Its own imports are looked at, and held up.
acceptance: Any = importlib.import_module("broker_core.pipeline.listers.accept_answer")


class Answers(MemoryLister):
    """A default lister with one answer."""

    name = "upstream"

    def __init__(self, result: TopicListingResult) -> None:
        super().__init__(at_once=False)
        self.result = result

    def _result(self, request: ListingRequest) -> TopicListingResult:
        self.asked.append(request)
        return self.result


success = TopicListingResult.success


async def test_room_is_reserved_before_it_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """For the names as they were returned, for the column, and for all that is made of that."""
    held: dict[str, int] = {}
    listed = sum(sys.getsizeof(name) for name in NAMES) + 8 * len(NAMES)
    column = sum(map(len, NAMES)) + 8 * len(NAMES)
    make_column, build, kept = acceptance.as_column, Listing.from_names, AnswerStore.get

    def as_column(topics: Any) -> Any:
        held["column"] = m.permits.heap.acquired
        return make_column(topics)

    def built(*arguments: Any) -> Any:
        held["built"] = m.permits.heap.acquired
        return build(*arguments)

    def get(*arguments: Any) -> Any:
        held["kept"] = m.permits.heap.acquired
        return kept(*arguments)

    monkeypatch.setattr(acceptance, "as_column", as_column)
    monkeypatch.setattr(Listing, "from_names", built)
    monkeypatch.setattr(AnswerStore, "get", get)
    plugin = PluginOf(list_topics=lambda: TopicListingResult.success(NAMES, version=1))
    async with made(plugins={"p": plugin}, limits=LimitsSettings(heap_permits=7_200_000)) as m:
        (await m.ask()).release()
        assert 0.9 * listed < held["kept"] < 1.2 * listed
        assert held["column"] >= 0.9 * (listed + column)
        assert held["built"] >= 0.9 * listed + 7.5 * column
        trace = Trace()
        (await m.pipeline.answer(request(), trace)).release()
        assert trace.permits["estimate"] == held["built"]


@pytest.mark.parametrize("how", ["fails", "cancelled", "late"])
async def test_what_a_request_had_is_free_at_once_when_it_fails(
    how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the cyclic collector, which a quiet server does not run."""
    made_listings: list[weakref.ref[Listing]] = []
    build = Listing.from_names

    def built(*arguments: Any) -> Any:
        listing = build(*arguments)
        made_listings.append(weakref.ref(listing))
        return listing

    async def broker_core_visible() -> Any:
        if how == "fails":
            raise ValueError("mask")
        masking.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(Listing, "from_names", built)
    masking = asyncio.Event()
    lister = PluginOf(list_topics=lambda: TopicListingResult.success(NAMES))
    plugins = {"p": lister, "m": PluginOf(visible=broker_core_visible)}
    gc.collect()
    gc.disable()
    try:
        async with made(plugins=plugins, tables={"m": {"deadline": 2 * AGES}}) as m:
            then = asyncio.get_running_loop().time() + AGES

            async def ask() -> None:  # as the connections do
                with pytest.raises(ListingFailed):
                    await m.ask(deadline=then)

            task = asyncio.create_task(ask())
            task.add_done_callback(lambda done: let_go_of_cancelled(done) if done.cancelled() else None)
            if how != "fails":
                await asyncio.wait_for(masking.wait(), 60)
            if how == "cancelled":
                task.cancel()
            elif how == "late":
                time_passes(monkeypatch, AGES + 1)
            await asyncio.wait({task})
            assert task.cancelled() is (how == "cancelled")
            assert how == "cancelled" or task.exception() is None
            del task
            await eventually(lambda: made_listings[0]() is None)
    finally:
        gc.enable()


async def test_what_building_takes_is_within_what_is_reserved_for_it() -> None:
    """In disorder, which takes most: what Arrow and numpy allocate at a time, against what permits are held for."""
    shuffled = list(NAMES)
    random.Random(1).shuffle(shuffled)
    column = acceptance.as_column(shuffled)
    pool = pa.proxy_memory_pool(pa.system_memory_pool())  # whose most is that of this test
    before = pa.default_memory_pool()
    pa.set_memory_pool(pool)
    tracemalloc.start()
    try:
        begun = pool.bytes_allocated()
        Listing.from_names(request().namespace, request().mode, column)
        took = pool.max_memory() - begun + tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        pa.set_memory_pool(before)
    assert 3 * column.nbytes < took <= (acceptance._BUILD_FACTOR - 1) * column.nbytes + 1_000_000


async def test_a_bad_topic_of_the_default_lister() -> None:
    async with made(Answers(success(["persistent://t/x/a"]))) as m:
        with pytest.raises(
            ListingFailed, match=r"upstream returned a bad topic: .*not in namespace t/n"
        ) as raised:
            await m.ask()
        assert (raised.value.code, raised.value.reason) == (ServerError.MetadataError, "bad_topics")


async def test_the_default_lister_may_filter_by_an_engine_that_knows_more() -> None:
    """Brokers upstream run patterns that RE2 refuses; nobody here could check it."""
    async with made(Answers(success(FEW, filtered=True))) as m:
        answer = await m.ask(pattern="t/n/(?!x).*")
        assert (answer.filtered, answer.plan, names(answer)) == (True, "lister", sorted(FEW))
    async with made(
        Answers(success(FEW, filtered=True)), options=PipelineOptions(PatternsSettings(evaluate=False))
    ) as m:
        answer = await m.ask(pattern="t/n/.*")
        assert not answer.filtered
        assert m.lister.asked[0].pattern is None
        answer.release()
    async with made(Answers(success(FEW, filtered=False))) as m:
        answer = await m.ask(pattern="t/n/3.*")
        assert answer.filtered
        assert names(answer) == [name for name in sorted(FEW) if "/3-" in name]


@pytest.mark.parametrize("pattern", [None, "t/n/.*", "t/n/(?!x).*"])
async def test_unchanged_of_the_default_lister(pattern: str | None) -> None:
    async with made(Answers(TopicListingResult.unchanged("01234567"))) as m:
        answer = await m.ask(pattern=pattern, topics_hash="01234567")
        assert (answer.changed, answer.topics_hash) == (False, "01234567")
        assert answer.filtered is (pattern is not None)
        with pytest.raises(ListingFailed, match="upstream answered unchanged to a request without that hash"):
            await m.ask(pattern=pattern)


UNSUPPORTED = "t/n/(?!x).*"


@pytest.mark.parametrize(
    ("pattern", "evaluate"),
    [(UNSUPPORTED, True), (UNSUPPORTED, False), ("t/n/0.*", False), ("t/n/0.*", True)],
)
@pytest.mark.parametrize("verify", ["never", "sample", "always"])
async def test_a_claim_about_a_pattern_that_is_not_evaluated_is_believed_where_none_is_verified(
    pattern: str, evaluate: bool, verify: str
) -> None:
    plugin = PluginOf(list_topics=lambda: success(FEW, filtered=True))
    options, tables = PipelineOptions(PatternsSettings(evaluate=evaluate)), {"p": {"verify_filtered": verify}}
    async with made(plugins={"p": plugin}, options=options, tables=tables) as m:
        answer = await m.ask(pattern=pattern)
        evaluated = evaluate and pattern != UNSUPPORTED
        assert answer.filtered is (verify == "never" or evaluated)
        expected = [name for name in FEW if "n/0" in name] if evaluated and verify != "never" else FEW
        assert sorted(names(answer)) == sorted(expected)
        answer = await m.ask()
        assert not answer.filtered  # there is no pattern
        answer.release()


async def test_a_lister_that_claims_nothing_is_not_believed_more() -> None:
    plugin = PluginOf(list_topics=lambda: success(FEW))
    async with made(plugins={"p": plugin}, tables={"p": {"verify_filtered": "never"}}) as m:
        answer = await m.ask(pattern=UNSUPPORTED)
        assert not answer.filtered
        answer.release()
