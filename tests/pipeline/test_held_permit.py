"""Heap permits of one request: from the estimate to the truth, and nothing left behind on any way out."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from broker_core.errors import ListingFailed, ServerError, TooManyRequests
from broker_core.permits import PermitLimits, Permits
from broker_core.pipeline.held_permit import HeldPermit
from broker_core.size_cache import INITIAL_SIZE, SizeHolder
from tests.support.eventually import eventually

HEAP = 1_000_000


@pytest.fixture
def permits() -> Permits:
    return Permits(PermitLimits(heap=HEAP, queue=2))


@pytest.fixture
def holder() -> SizeHolder:
    return SizeHolder()


async def held_by(permits: Permits, holder: SizeHolder) -> HeldPermit:
    held = HeldPermit(permits, holder)
    await held.acquire_estimate()
    return held


async def test_from_the_estimate_to_the_true_size(permits: Permits, holder: SizeHolder) -> None:
    held = await held_by(permits, holder)
    assert held.count == permits.heap.acquired == INITIAL_SIZE
    await held.reserve(50_000)
    assert permits.heap.acquired == 50_000
    await held.reserve(20_000)
    assert permits.heap.acquired == 50_000  # in all, not on top
    held.settle(30_000, 30_000)
    assert permits.heap.acquired == 30_000
    permit = held.hand_over()
    assert permit is not None
    assert held.count == 0
    permit.release()
    assert permits.heap.acquired == 0
    assert (await held_by(permits, holder)).count == 30_000  # the next one like it


async def test_others_wait_for_the_size_that_the_first_finds_out(
    permits: Permits, holder: SizeHolder
) -> None:
    first = await held_by(permits, holder)
    second = asyncio.create_task(held_by(permits, holder))
    await asyncio.sleep(0)
    assert not second.done()
    first.settle(70_000, 70_000)
    assert (await second).count == 70_000


async def test_an_answer_that_holds_little_may_have_taken_much(permits: Permits, holder: SizeHolder) -> None:
    held = await held_by(permits, holder)
    held.settle(0, 80_000)  # unchanged, which was known only when all was built
    assert permits.heap.acquired == 0
    held.give_up()
    again = await held_by(permits, holder)
    assert again.count == 80_000
    again.settle(0, None)  # unchanged, said the lister
    again.give_up()
    assert holder.try_size() == 80_000


async def test_whoever_waits_goes_on_where_there_is_nothing_to_learn(
    permits: Permits, holder: SizeHolder
) -> None:
    first = await held_by(permits, holder)
    second = asyncio.create_task(held_by(permits, holder))
    await asyncio.sleep(0)
    first.settle(0, None)
    assert (await second).count == 0


async def test_the_first_fails_and_the_others_go_on(permits: Permits, holder: SizeHolder) -> None:
    first = await held_by(permits, holder)
    waiting = [asyncio.create_task(held_by(permits, holder)) for _ in range(3)]
    await asyncio.sleep(0)
    first.give_up()
    for task in waiting:
        assert (await task).count == INITIAL_SIZE
    assert permits.heap.acquired == 3 * INITIAL_SIZE
    assert holder.try_size() == INITIAL_SIZE  # and the next is a first again
    assert holder.in_flight


async def test_one_that_waited_and_fails_does_not_take_the_size_of_the_first(
    permits: Permits, holder: SizeHolder
) -> None:
    first = await held_by(permits, holder)
    second = HeldPermit(permits, holder)
    waiting = asyncio.create_task(second.acquire_estimate())
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    second.give_up()
    assert holder.in_flight  # the first is still under way
    first.settle(5, 5)
    assert holder.try_size() == 5


async def test_no_permits_for_the_estimate(permits: Permits, holder: SizeHolder) -> None:
    permits.heap.timeout = 0.01
    everything = await permits.heap.acquire(HEAP)
    held = HeldPermit(permits, holder)
    with pytest.raises(TooManyRequests, match="Failed due to heap memory limit exceeded") as raised:
        await held.acquire_estimate()
    assert (raised.value.code, raised.value.reason) == (ServerError.TooManyRequests, "heap_timeout")
    held.give_up()
    everything.release()
    assert permits.heap.acquired == 0
    assert not holder.in_flight


async def test_no_permits_for_more(permits: Permits, holder: SizeHolder) -> None:
    permits.heap.timeout = 0.01
    held = await held_by(permits, holder)
    rest = await permits.heap.acquire(HEAP - INITIAL_SIZE)
    with pytest.raises(TooManyRequests, match="Failed due to heap memory limit exceeded"):
        await held.reserve(INITIAL_SIZE + 1)
    assert held.count == INITIAL_SIZE
    rest.release()
    held.give_up()
    assert permits.heap.acquired == 0


async def test_a_full_queue(permits: Permits) -> None:
    everything = await permits.heap.acquire(HEAP)
    waiting = [asyncio.create_task(held_by(permits, SizeHolder())) for _ in range(2)]
    await eventually(lambda: permits.heap.queue_size == 2)
    with pytest.raises(TooManyRequests, match="Failed due to heap memory limit exceeded") as raised:
        await held_by(permits, SizeHolder())
    assert raised.value.reason == "heap_queue"
    everything.release()
    for task in waiting:
        (await task).give_up()
    assert permits.heap.acquired == 0


async def test_more_than_there_is_runs_alone(permits: Permits, holder: SizeHolder) -> None:
    held = await held_by(permits, holder)
    await held.reserve(100 * HEAP)
    assert permits.heap.acquired == HEAP
    await held.reserve(200 * HEAP)
    held.settle(100 * HEAP, 100 * HEAP)
    held.give_up()
    assert permits.heap.acquired == 0
    assert (await held_by(permits, holder)).count == HEAP


async def test_two_reservations_at_once_lose_nothing(permits: Permits, holder: SizeHolder) -> None:
    """Each replaces the permit: the one that waited must not forget the other's."""
    held = await held_by(permits, holder)
    rest = await permits.heap.acquire(HEAP - INITIAL_SIZE)
    more = [asyncio.create_task(held.reserve(INITIAL_SIZE + size)) for size in (10_000, 20_000, 5_000)]
    await eventually(lambda: permits.heap.queue_size == 1)
    rest.release()
    await asyncio.gather(*more)
    assert permits.heap.acquired == held.count == INITIAL_SIZE + 20_000
    held.give_up()
    assert permits.heap.acquired == 0


@pytest.mark.parametrize("ending", ["hand over", "give up"])
async def test_a_reservation_that_waits_ends_with_the_request(
    permits: Permits, holder: SizeHolder, ending: str
) -> None:
    """A plugin may leave one behind; its permits would never be released."""
    held = await held_by(permits, holder)
    rest = await permits.heap.acquire(HEAP - INITIAL_SIZE)
    left_behind = [asyncio.create_task(held.reserve(HEAP)) for _ in range(2)]
    await eventually(lambda: permits.heap.queue_size == 1)
    if ending == "hand over":
        held.settle(100, 100)
        permit = held.hand_over()
        assert permit is not None
        permit.release()
    else:
        held.give_up()
    for task in left_behind:
        with pytest.raises(ListingFailed, match="This request is over"):
            await task
    assert permits.heap.acquired == rest.count
    assert permits.heap.queue_size == 0


async def test_granted_in_the_moment_of_the_end(permits: Permits, holder: SizeHolder) -> None:
    held = await held_by(permits, holder)
    rest = await permits.heap.acquire(HEAP - INITIAL_SIZE)
    late = asyncio.create_task(held.reserve(HEAP // 2))
    await eventually(lambda: permits.heap.queue_size == 1)
    rest.release()  # granted, but the one who waited has not run yet
    held.give_up()
    with pytest.raises(ListingFailed, match="This request is over"):
        await late
    assert permits.heap.acquired == 0


async def test_nothing_is_reserved_after_the_end(permits: Permits, holder: SizeHolder) -> None:
    held = await held_by(permits, holder)
    held.settle(0, 0)
    permit = held.hand_over()
    assert permit is not None
    for size in (1, 10**9):
        with pytest.raises(ListingFailed, match="This request is over"):
            await held.reserve(size)
    held.give_up()
    assert permits.heap.acquired == 0


@pytest.mark.parametrize("size", [float("nan"), 1e6, "x", None, -1])
async def test_what_is_no_number_of_bytes_is_refused(permits: Permits, holder: SizeHolder, size: Any) -> None:
    """A NaN would be neither more nor less than anything, and so would every sum that it is part of."""
    held = await held_by(permits, holder)
    with pytest.raises((TypeError, ValueError)):
        await held.reserve(size)
    assert held.count == permits.heap.acquired == INITIAL_SIZE
    held.give_up()
    assert permits.heap.acquired == 0


async def test_a_cancelled_reservation_leaves_what_was_held(permits: Permits, holder: SizeHolder) -> None:
    held = await held_by(permits, holder)
    rest = await permits.heap.acquire(HEAP - INITIAL_SIZE)
    waiting = asyncio.create_task(held.reserve(HEAP))
    await eventually(lambda: permits.heap.queue_size == 1)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert permits.heap.queue_size == 0
    assert held.count == INITIAL_SIZE
    rest.release()
    await held.reserve(HEAP)
    held.give_up()
    assert permits.heap.acquired == 0


async def test_without_a_limit_nothing_is_counted(holder: SizeHolder) -> None:
    permits = Permits(PermitLimits(heap=0))
    held = await held_by(permits, holder)
    await held.reserve(10**12)
    held.settle(5, 5)
    assert held.hand_over() is not None
    assert permits.heap.acquired == 0
