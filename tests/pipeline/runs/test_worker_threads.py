"""Work of the pipeline in threads: patterns, searches, and other long work."""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from broker_core.access.asker import Asker
from broker_core.concurrency import ON_LOOP
from broker_core.concurrency.loop_turns import TURN_SECONDS, loop_turn
from broker_core.errors import InvalidPattern
from broker_core.listing.listing import Listing, Selection, data_of
from broker_core.names import Mode
from broker_core.patterns import compile_pattern
from broker_core.pipeline.runs import fair_threads, worker_threads
from broker_core.pipeline.runs.worker_threads import Workers
from tests.support.eventually import eventually

#: Of the dearest level by what it may cost.
SLOW = "(?:.*[0-9a].{1,28}[b-f]){20}[xy]"


@pytest_asyncio.fixture
async def workers() -> AsyncIterator[Workers]:
    made = Workers()
    yield made
    made.close()


@pytest.fixture(scope="module")
def listing() -> Listing:
    """Names on which RE2's automaton has too many states."""
    names = [f"persistent://t/n/{pow(3, number, 2**160):040x}-{number:06d}" for number in range(60_000)]
    return Listing.from_names("t/n", Mode.PERSISTENT, names)


def out_of_time() -> None:
    """Use up what this turn of the loop has."""
    turn = loop_turn()
    turn.has_time()
    until = time.perf_counter() + TURN_SECONDS
    while time.perf_counter() <= until:
        pass
    assert not turn.has_time()


async def test_a_search_is_done_at_once_if_it_is_known_or_there_is_time(workers: Workers) -> None:
    names = [f"persistent://t/n/few-{number}" for number in range(20)]
    selection, pattern = Listing.from_names("t/n", Mode.PERSISTENT, names).all(), compile_pattern(".*7")
    out_of_time()
    assert workers.try_matching(selection, pattern) is None
    await asyncio.sleep(0)
    found = workers.try_matching(selection, pattern)
    assert found is not None
    assert len(found) == 2
    out_of_time()
    assert workers.try_matching(selection, pattern) is not None, "it is known by now"


async def test_a_pattern_is_compiled_once_for_all_who_wait(workers: Workers) -> None:
    text = r"t/n/(\pL|\pN){6}together"
    patterns = await asyncio.gather(*(workers.compile(Asker(), text, 1024) for _ in range(5)))
    assert all(pattern is patterns[0] for pattern in patterns)
    assert workers.kinds["compile"].waits.count == 1


async def test_a_broken_pattern_is_an_error(workers: Workers) -> None:
    with pytest.raises(InvalidPattern, match=r"missing '\)'"):
        await workers.compile(Asker(), "(" * 400, 1024)


async def test_a_search_is_the_same_on_the_loop_and_in_threads(workers: Workers, listing: Listing) -> None:
    for text in ("t/n/.*0[0-9]*7-.*5", "t/n/.*[13579].*[b-d]$", "t/n/0.*", "t/n/.*-00012[0-9]"):
        expected = listing.all().matching(compile_pattern(text)).topics_hash
        data_of(listing).memo.close()  # nothing is remembered from now on
        out_of_time()
        found = await workers.matching(Asker(), listing.all(), compile_pattern(text))
        assert found.topics_hash == expected
        part = listing.rows(found.row_array[::2]) if len(found) else listing.rows(found.row_array)
        within = await workers.matching(Asker(), part, compile_pattern(text))
        assert within.topics_hash == part.topics_hash
    assert workers.kinds["scan"].waits.count > 0


class SliceClock:
    """The clock of a single thread: each slice takes as long as any other, and begins once it may."""

    def __init__(self) -> None:
        self.monotonic = time.monotonic
        self._seconds = itertools.count(step=1e-6)
        self._begins = itertools.cycle((True, False))
        self._may_begin = threading.Semaphore(0)

    def thread_time(self) -> float:
        """The time at which a slice begins or ends."""
        if next(self._begins):
            self._may_begin.acquire()
        return next(self._seconds)

    def let_begin(self, slices: int) -> None:
        self._may_begin.release(slices)


async def test_an_ordinary_search_passes_slow_ones(listing: Listing, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those of many connections: it has 64 times the time of one of their slices before the next of these."""
    clock = SliceClock()
    monkeypatch.setattr(fair_threads, "time", clock)
    # Two threads would go on beside each other, however slow one of them is.
    monkeypatch.setattr(worker_threads, "_SCANS", 1)
    workers = Workers()
    scans = workers.kinds["scan"]
    slices: list[Any] = []
    monkeypatch.setattr(scans, "_charge", lambda connection, _seconds: slices.append(connection))

    async def search(asker: Asker, text: str) -> Selection:
        out_of_time()
        return await workers.matching(asker, listing.all(), compile_pattern(text))

    hostile = [asyncio.create_task(search(Asker(), f"{SLOW}(?:{number}z)?")) for number in range(20)]
    tasks = hostile.copy()
    try:
        await eventually(lambda: scans.waiting == 19)  # and the slice of one may not begin yet
        clock.let_begin(20)
        # The one that came first may have had two, and the last one is taken after them.
        await eventually(lambda: len(slices) == 20 and scans.waiting == 0)
        text, asker = "t/n/.*[0-9]*77-.*5", Asker()
        ordinary = asyncio.create_task(search(asker, text))
        tasks.append(ordinary)
        await eventually(lambda: scans.waiting == 1)
        clock.let_begin(200)
        found = await ordinary
        assert not any(task.done() for task in hostile)
        assert found.topics_hash == listing.all().matching(compile_pattern(text)).topics_hash
        own = [number for number, connection in enumerate(slices) if connection is asker.connection]
        of_others = own[-1] - own[0] + 1 - len(own)
        assert of_others <= 1 + len(own) // 64, slices
        for task in hostile:
            task.cancel()
        clock.let_begin(200)
        await eventually(lambda: not scans._active)
        assert scans.waiting == 0
    finally:
        for task in tasks:
            task.cancel()
        clock.let_begin(10_000)
        await asyncio.gather(*tasks, return_exceptions=True)
        workers.close()


async def test_other_work_runs_on_the_loop_only_if_it_is_quick(workers: Workers) -> None:
    here = threading.current_thread()
    assert await workers.call(Asker(), threading.current_thread, ON_LOOP) is here
    assert await workers.call(Asker(), threading.current_thread) is not here
    assert await workers.call(Asker(), threading.current_thread, ON_LOOP + 1) is not here
    out_of_time()
    turns: list[None] = []
    asyncio.get_running_loop().call_soon(turns.append, None)
    assert await workers.call(Asker(), threading.current_thread, ON_LOOP) is here
    assert turns  # in a later turn
