"""The path of a listing without sockets: permits, threads, and reports."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from typing import Any

import pytest
from structlog.testing import capture_logs

from broker_core import ListingRequest, TopicListingResult
from broker_core.errors import ListingFailed, TooManyRequests
from broker_core.listing.listing_hash import topics_hash
from broker_core.memory.estimates import INITIAL_SIZE
from broker_core.names import Mode, NamespaceName
from broker_core.pipeline.runs.fair_threads import UncutWork
from tests.support.eventually import eventually
from tests.support.memory_lister import MemoryLister
from tests.support.pipelines import FEW, NAMES, made, names, request

# -- both ways ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "plan", "matches"),
    [
        (None, "none", lambda name: True),
        (".*", "all", lambda name: True),
        ("t/n/3-00010", "literal", lambda name: name == NAMES[10]),
        ("t/n/0-.*", "range", lambda name: "/0-" in name),
        (".*77", "scan", lambda name: name.endswith("77")),
        ("t/n/(?!0).*", "unsupported", lambda name: True),
    ],
)
async def test_both_ways_answer_the_same(pattern: str | None, plan: str, matches: Any) -> None:
    expected = sorted(filter(matches, NAMES))
    async with made() as m:
        slow = await m.ask(pattern=pattern)
        again = await m.ask(pattern=pattern)  # remembered by now, or quick anyway
        m.lister.at_once = True
        quick = m.pipeline.answer_now(request(pattern=pattern))
        assert quick is not None
        for answer in (slow, again, quick):
            assert (answer.plan, answer.lister) == (plan, "catalog")
            assert answer.filtered is (plan not in ("none", "unsupported"))
            assert answer.topics_hash == topics_hash(expected)
            assert names(answer) == expected
        await asyncio.sleep(0)  # another turn of the loop, which has time for quick work again
        unchanged = m.pipeline.answer_now(request(pattern=pattern, topics_hash=topics_hash(expected)))
        assert unchanged is not None
        assert not unchanged.changed
        assert m.sample("listing_requests_total", outcome="served", plan=plan) == 3
        assert m.sample("listing_requests_total", outcome="unchanged", plan=plan) == 1


async def test_after_the_budgets_are_closed_there_are_only_errors() -> None:
    async with made(MemoryLister(FEW)) as m:
        m.permits.close()
        with pytest.raises(ListingFailed):
            m.pipeline.answer_now(request(pattern=".*[02468]"))
        with pytest.raises(ListingFailed):
            await m.ask()


# -- permits ------------------------------------------------------------------------------------------------------


async def test_different_questions_wait_for_one_first_of_their_namespace_alone() -> None:
    source = MemoryLister(FEW, at_once=False)
    source.gate.clear()
    async with made(source) as m:
        asked: list[dict[str, Any]] = [
            {},
            {"mode": Mode.ALL},
            {"pattern": "t/n/.*"},
            {"properties": {"k": "v"}},
            {"namespace": NamespaceName("t", "other")},
        ]
        tasks = [
            asyncio.create_task(m.pipeline.answer(replace(request(each.pop("pattern", None)), **each)))
            for each in asked
        ]
        await eventually(lambda: len(source.asked) == 2)
        assert [str(question.namespace) for question in source.asked] == ["t/n", "t/other"]
        source.gate.set()
        for answer in await asyncio.gather(*tasks):
            answer.release()
        source.gate.clear()
        again = asyncio.create_task(m.ask(pattern="t/n/new.*"))
        another = asyncio.create_task(m.ask(pattern="t/n/newer.*"))
        await eventually(lambda: len(source.asked) == len(asked) + 2)  # the namespace is known
        source.gate.set()
        for answer in await asyncio.gather(again, another):
            answer.release()


async def test_the_same_question_waits_for_the_size_of_the_first() -> None:
    source = MemoryLister(FEW, at_once=False)
    source.gate.clear()
    async with made(source) as m:
        tasks = [asyncio.create_task(m.ask()) for _ in range(5)]
        await eventually(lambda: source.asked)
        source.gate.set()
        for answer in await asyncio.gather(*tasks):
            answer.release()
        assert len(source.asked) == 5


async def test_a_failed_first_lets_the_others_go_on() -> None:
    class FailsOnce(MemoryLister):
        def _result(self, request: ListingRequest) -> TopicListingResult:
            if len(self.asked) == 1:
                raise ListingFailed("disk")
            return super()._result(request)

    source = FailsOnce(FEW, at_once=False)
    source.gate.clear()
    async with made(source) as m:
        tasks = [asyncio.create_task(m.ask()) for _ in range(3)]
        await eventually(lambda: source.asked)
        source.gate.set()
        with pytest.raises(ListingFailed, match="disk"):
            await tasks[0]
        for answer in await asyncio.gather(*tasks[1:]):
            answer.release()


async def test_a_request_given_up_gives_all_back() -> None:
    source = MemoryLister(FEW, at_once=False)
    source.gate.clear()
    async with made(source) as m:
        task = asyncio.create_task(m.ask())
        await eventually(lambda: source.asked)
        assert m.permits.heap.acquired == INITIAL_SIZE
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert m.permits.heap.acquired == 0


async def test_a_search_ends_when_nobody_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a search that takes minutes nothing goes on after the slice that runs."""
    slow = [f"persistent://t/n/{number:040x}" for number in range(0, 10**24, 10**19)]
    async with made(MemoryLister(slow, at_once=False)) as m:
        task = asyncio.create_task(m.ask(pattern="(?:.*[0-9a].{1,28}[b-f]){6}[xy]"))
        scans = m.pipeline.workers.kinds["scan"]
        ended: list[float] = []
        monkeypatch.setattr(scans, "_charge", lambda _connection, seconds: ended.append(seconds))
        await eventually(lambda: len(ended) > 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        after = len(ended)
        await eventually(lambda: not scans._active)
        assert len(ended) <= after + scans.size  # one slice of each thread


async def test_the_time_budget_covers_the_waiting_for_permits() -> None:
    async with made() as m:
        loop = asyncio.get_running_loop()
        held = await m.permits.heap.acquire(m.permits.heap.maximum)
        with pytest.raises(TooManyRequests, match="took longer than") as raised:
            await m.ask(deadline=loop.time() + 0.01)
        assert raised.value.reason == "time"
        assert m.permits.heap.queue_size == 0
        held.release()
        assert m.sample("listing_rejected_total", reason="time") == 1


async def test_a_timeout_of_a_lister_is_its_own() -> None:
    source = MemoryLister(FEW, at_once=False)
    source.error = TimeoutError()
    async with made(source) as m:
        with capture_logs(), pytest.raises(ListingFailed, match="Internal error: TimeoutError"):
            await m.ask(deadline=asyncio.get_running_loop().time() + 60)


# -- compiling and threads ----------------------------------------------------------------------------------------


async def test_the_time_budget_covers_the_waiting_for_a_compiler() -> None:
    async with made() as m:
        compiler = m.pipeline.workers.kinds["compile"]
        free = threading.Event()
        taken = asyncio.create_task(compiler.run(object(), UncutWork(free.wait)))
        await eventually(lambda: compiler.waits.count == 1)
        try:
            late = request(deadline=asyncio.get_running_loop().time() + 0.01)
            with pytest.raises(TooManyRequests, match="took longer than") as raised:
                await m.pipeline.with_pattern(late, r"t/n/(\pL|\pN){7}in-time")
            assert raised.value.reason == "time"
            assert m.sample("listing_rejected_total", reason="time") == 1
        finally:
            free.set()
        assert await taken
        assert compiler.waiting == 0


async def test_a_broken_pattern_is_refused_wherever_it_is_compiled() -> None:
    async with made() as m:
        for broken in ("t/n/(x", "(" * 300):
            with pytest.raises(ListingFailed, match="missing") as raised:
                await m.pipeline.with_pattern(request(), broken)
            assert raised.value.reason == "bad_pattern"
        with pytest.raises(ListingFailed, match="missing"):
            m.pipeline.compile_now("t/n/(x")


async def test_what_the_threads_did_is_shown() -> None:
    async with made() as m:
        await m.pipeline.with_pattern(request(), r"t/n/(\pL|\pN){7}shown")
        assert m.sample("work_wait_seconds_count", kind="compile") == 1
        assert m.sample("work_cpu_seconds_total", kind="compile") > 0
        for kind in ("compile", "scan", "listing"):
            assert m.sample("work_queue_size", kind=kind) == 0
