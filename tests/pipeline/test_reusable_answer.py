"""An answer stands for as long as the lister lists the same, and is counted each time."""

from __future__ import annotations

import gc
from typing import Any

from broker_core import ListingRequest
from broker_core.access.asker import Asker
from broker_core.patterns import TopicsPattern
from broker_core.pipeline import Answer, PipelineOptions
from broker_core.pipeline.answer import ReusableAnswer
from broker_core.settings import PatternsSettings
from tests.support.memory_lister import MemoryLister
from tests.support.pipelines import FEW, NAMES, Made, made, request
from tests.support.plugins import PluginOf


def answered(m: Made, **fields: Any) -> Answer:
    answer = m.pipeline.answer_now(request(**fields))
    assert answer is not None
    answer.release()
    return answer


def reusable(m: Made, **fields: Any) -> ReusableAnswer:
    found = ReusableAnswer.of(request(**fields), answered(m, **fields))
    assert found is not None
    return found


async def test_it_stands_until_the_lister_has_another_listing() -> None:
    lister = MemoryLister(FEW)
    async with made(lister) as m:
        whole, some = reusable(m), reusable(m, pattern="t/n/0.*")
        unchanged = reusable(m, topics_hash=whole.topics_hash)
        assert (whole.changed, unchanged.changed) == (True, False)
        assert (whole.topics, some.topics, unchanged.topics) == (10, 2, 0)
        assert (whole.filtered, some.filtered) == (False, True)
        assert all(map(m.again, (whole, some, unchanged)))
        lister.at_once = False
        assert not m.again(whole)
        lister.at_once = True
        assert m.again(whole)
        lister.change(FEW)  # the same topics, but who knows
        assert not any(map(m.again, (whole, some, unchanged)))


async def test_it_keeps_no_listing_in_memory() -> None:
    lister = MemoryLister(FEW)
    async with made(lister) as m:
        whole = reusable(m)
        assert whole.listing() is not None
        lister.change(FEW)
        gc.collect()
        assert whole.listing() is None
        assert not m.again(whole)


async def test_it_knows_nobody_who_asked() -> None:
    async with made(MemoryLister(FEW)) as m:
        found = reusable(m, asker=Asker(role="admin"), topics_hash="00000000", deadline=4711.0)
        assert found.question == request()


async def test_each_time_is_counted_as_a_listing() -> None:
    async with made(MemoryLister(FEW)) as m:
        some = reusable(m, pattern="t/n/0.*")
        unchanged = reusable(m, pattern="t/n/0.*", topics_hash=some.topics_hash)
        for _ in range(3):
            assert m.again(some)
        assert m.again(unchanged)
        assert m.sample("listing_requests_total", outcome="served", plan="range") == 4
        assert m.sample("listing_requests_total", outcome="unchanged", plan="range") == 2
        assert m.sample("listing_seconds_count") == m.sample("listing_names_count") == 6
        assert m.sample("listing_names_sum") == 8
        (asked,) = m.pipeline.questions.most_frequent()
        assert (asked.namespace, asked.topics_pattern, asked.properties, asked.count) == (
            "t/n",
            "t/n/0.*",
            (),
            6,
        )


async def test_what_depends_on_more_than_the_listing_does_not_stand() -> None:
    async with made(MemoryLister(FEW)) as m:
        answer = answered(m, properties={"k": "v"})
        assert ReusableAnswer.of(request(properties={"k": "v"}), answer) is None
    async with made(MemoryLister(NAMES)) as m:
        answer = await m.ask()
        assert ReusableAnswer.of(request(), answer) is None  # another way than at once
        answer.release()


async def test_observers_are_told_who_asked_so_nothing_is_answered_again() -> None:
    async def broker_core_listing_served(outcome: object) -> None:
        pass

    plugin = PluginOf(listing_served=broker_core_listing_served)
    async with made(MemoryLister(FEW), {"o": plugin}) as m:
        assert not m.again(reusable(m))


async def test_a_failure_is_told_by_asking_the_long_way() -> None:
    lister = MemoryLister(FEW)
    async with made(lister, options=PipelineOptions(PatternsSettings())) as m:
        whole = reusable(m)

        def broken(request: ListingRequest, applied: TopicsPattern | None = None) -> None:
            raise OSError("gone")

        lister.list_now = broken  # type: ignore[method-assign]
        assert not m.again(whole)
        assert m.sample("listing_requests_total", outcome="served", plan="none") == 1
        assert m.sample("listing_requests_total", outcome="error", plan="unknown") == 0
