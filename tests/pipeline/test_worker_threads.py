"""Work of the pipeline in threads: patterns, searches, and other long work."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from broker_core.access.asker import Asker
from broker_core.concurrency.loop_turn import TURN_SECONDS, loop_turn
from broker_core.errors import InvalidPattern
from broker_core.listing.listing import Listing, data_of
from broker_core.names import Mode
from broker_core.patterns import compile_pattern
from broker_core.pipeline import worker_threads
from broker_core.pipeline.worker_threads import Workers
from tests.support.eventually import eventually

SLOW = "(?:.*[0-9a].{1,28}[b-f]){6}[xy]"


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


async def test_an_ordinary_search_passes_slow_ones(listing: Listing, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those of many connections: it has 64 times the time of one of their slices before the next of these."""
    monkeypatch.setattr(
        worker_threads, "_SCANS", 1
    )  # two would go on beside each other, however slow one of them is
    workers = Workers()
    hostile = [
        asyncio.create_task(
            workers.matching(Asker(), listing.all(), compile_pattern(f"{SLOW}(?:{number}z)?"))
        )
        for number in range(20)
    ]
    scans = workers.kinds["scan"]
    slices: list[Any] = []
    monkeypatch.setattr(scans, "_charge", lambda connection, _seconds: slices.append(connection))
    await eventually(lambda: len(slices) > 20)
    pattern, asker = compile_pattern("t/n/.*[0-9]*77-.*5"), Asker()
    out_of_time()
    found = await workers.matching(asker, listing.all(), pattern)
    assert found.topics_hash == listing.all().matching(pattern).topics_hash
    first, last = (order.index(asker.connection) for order in (slices, slices[::-1]))
    of_others = len(slices[first : len(slices) - last]) - slices.count(asker.connection)
    assert of_others <= 1
    for task in hostile:
        assert not task.done()
        task.cancel()
    await asyncio.gather(*hostile, return_exceptions=True)
    await eventually(lambda: not scans._active)
    assert scans.waiting == 0
    workers.close()


async def test_other_work_runs_on_the_loop_only_if_it_is_quick(workers: Workers) -> None:
    here = threading.current_thread()
    assert await workers.call(Asker(), threading.current_thread, quick=True) is here
    assert await workers.call(Asker(), threading.current_thread) is not here
    out_of_time()
    turns: list[None] = []
    asyncio.get_running_loop().call_soon(turns.append, None)
    assert await workers.call(Asker(), threading.current_thread, quick=True) is here
    assert turns  # in a later turn
