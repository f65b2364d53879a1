"""The memory of an answer of the rest of the chain counts as long as anything refers to it."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator

import pytest

from broker_core import Listing, Mode
from broker_core.memory.estimates import Estimates
from broker_core.memory.permits import Permits
from broker_core.patterns import compile_pattern
from broker_core.pipeline.listers.ask_listers import RestOfChainMemory
from broker_core.pipeline.request.held_permit import HeldPermit
from broker_core.settings import LimitsSettings

HEAP, SNAPSHOTS = 10_000_000, 1_000_000


@pytest.fixture
async def permits() -> AsyncIterator[Permits]:
    permits = Permits(LimitsSettings(heap_permits=HEAP, snapshots=SNAPSHOTS))
    yield permits
    permits.leases.settle()
    assert permits.heap.acquired == permits.snapshots.acquired == 0


async def held_by(permits: Permits) -> HeldPermit:
    held = HeldPermit(permits, Estimates().of("t/n", "q", 1))
    await held.acquire_estimate()
    return held


def listing(count: int = 1000) -> Listing:
    return Listing.from_names(
        "t/n", Mode.PERSISTENT, [f"persistent://t/n/{n % 7}-{n:06}" for n in range(count)]
    )


async def test_two_answers_at_once_are_both_counted(permits: Permits) -> None:
    held = await held_by(permits)
    before = held.count
    one, other = listing(), listing()
    memories = RestOfChainMemory(held), RestOfChainMemory(held)
    await asyncio.gather(*(memory.reserve(500_000) for memory in memories))
    assert held.count == 1_000_000
    await memories[0].settle(one.all(), 200_000)
    await memories[1].settle(other.all(), 300_000)
    assert held.count == 500_000
    del one
    gc.collect()
    await held.reserve(1)
    assert held.count == 300_001
    held.settle(0)
    assert permits.heap.acquired == 0
    assert permits.snapshots.acquired == 300_000  # somebody has it still
    assert held.hand_over() is not None
    assert before <= 300_000
    del other


async def test_a_shared_listing_is_charged_where_it_is_kept(permits: Permits) -> None:
    held = await held_by(permits)
    shared = listing()
    memory = RestOfChainMemory(held)
    await memory.settle(shared.all(), 0)
    held.settle(0)
    assert shared not in permits.leases
    held.give_up()


async def test_rows_are_counted_too(permits: Permits) -> None:
    held = await held_by(permits)
    kept = listing().all().matching(compile_pattern("t/n/.*7"))
    assert not kept.is_slice
    memory = RestOfChainMemory(held)
    await memory.settle(kept, 0)
    held.settle(0)
    assert permits.snapshots.acquired == kept.row_array.nbytes > 0
    held.give_up()
    del kept


async def test_what_does_not_fit_into_the_snapshots_stays_where_it_was(permits: Permits) -> None:
    held = await held_by(permits)
    kept = listing()
    memory = RestOfChainMemory(held)
    await memory.settle(kept.all(), 2 * SNAPSHOTS)
    held.settle(0)
    permit = held.hand_over()
    assert permit is not None
    permit.release()
    assert permits.heap.acquired == 2 * SNAPSHOTS
    assert permits.snapshots.acquired == 0
    del kept


async def test_a_request_that_fails_leaves_what_is_kept(permits: Permits) -> None:
    held = await held_by(permits)
    kept = listing()
    await RestOfChainMemory(held).settle(kept.all(), 1000)
    held.give_up()
    assert permits.heap.acquired == 0
    assert permits.snapshots.acquired == 1000
    del kept


async def test_nothing_is_left_of_one_that_failed(permits: Permits) -> None:
    held = await held_by(permits)
    memory = RestOfChainMemory(held)
    await memory.reserve(500_000)
    with pytest.raises(ValueError, match="negative"):
        await memory.reserve(-1)
    memory.close()
    memory.close()
    await held.reserve(10)
    assert held.count < 500_000
    held.give_up()
