"""Heap permits of one request: from the estimate to the real size, released on every exit."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from broker_core.errors import ListingFailed, ServerError, TooManyRequests
from broker_core.listing.listing import Listing
from broker_core.memory.estimates import INITIAL_SIZE, Estimate, Estimates
from broker_core.memory.permits import Permits
from broker_core.names import Mode
from broker_core.pipeline.request.held_permit import HeldPermit, names_bytes, unknown_size
from broker_core.settings import LimitsSettings
from tests.support.eventually import eventually
from tests.support.pipelines import FEW, NAMESPACE

HEAP = 1_000_000


@pytest.fixture
def permits() -> Permits:
    return Permits(LimitsSettings(heap_permits=HEAP, permit_queue=2))


@pytest.fixture
def estimates() -> Estimates:
    return Estimates()


def estimate(estimates: Estimates) -> Estimate:
    return estimates.of("t/n", "question")


async def held_by(permits: Permits, estimates: Estimates) -> HeldPermit:
    held = HeldPermit(permits, estimate(estimates))
    await held.acquire_estimate()
    return held


async def test_from_the_estimate_to_the_true_size(permits: Permits, estimates: Estimates) -> None:
    held = await held_by(permits, estimates)
    assert held.count == permits.heap.acquired == INITIAL_SIZE
    await held.reserve(50_000)
    assert permits.heap.acquired == 50_000
    await held.reserve(20_000)
    assert permits.heap.acquired == 50_000  # in all, not on top
    held.settle(30_000)
    assert permits.heap.acquired == 30_000
    permit = held.hand_over()
    assert permit is not None
    assert held.count == 0
    permit.release()
    assert permits.heap.acquired == 0
    assert (await held_by(permits, estimates)).count == 50_000  # the next one like it: the peak, not the rest


async def test_others_wait_for_the_size_that_the_first_finds_out(
    permits: Permits, estimates: Estimates
) -> None:
    first = await held_by(permits, estimates)
    second = asyncio.create_task(held_by(permits, estimates))
    await asyncio.sleep(0)
    assert not second.done()
    first.settle(70_000)
    assert (await second).count == 70_000


async def test_an_answer_that_holds_little_may_have_taken_much(
    permits: Permits, estimates: Estimates
) -> None:
    held = await held_by(permits, estimates)
    await held.reserve(80_000)
    held.settle(0)  # unchanged, which was known only when all was built
    assert permits.heap.acquired == 0
    held.give_up()
    again = await held_by(permits, estimates)
    assert again.count == 80_000
    again.settle(0, made=False)  # unchanged, said the lister
    again.give_up()
    assert estimate(estimates).try_take() == 80_000


async def test_more_than_was_granted_is_learned(permits: Permits, estimates: Estimates) -> None:
    held = await held_by(permits, estimates)
    await held.reserve(3 * HEAP)
    held.settle(5)
    assert estimate(estimates).try_take() == 3 * HEAP


async def test_whoever_waits_goes_on_where_there_is_nothing_to_learn(
    permits: Permits, estimates: Estimates
) -> None:
    first = await held_by(permits, estimates)
    second = asyncio.create_task(held_by(permits, estimates))
    await asyncio.sleep(0)
    first.settle(0, made=False)
    assert (await second).count == INITIAL_SIZE  # not 0: nothing is known


async def test_the_first_fails_and_one_of_the_others_is_the_first(
    permits: Permits, estimates: Estimates
) -> None:
    first = await held_by(permits, estimates)
    waiting = [asyncio.create_task(held_by(permits, estimates)) for _ in range(3)]
    await asyncio.sleep(0)
    first.give_up()
    second = await waiting[0]
    assert permits.heap.acquired == second.count == INITIAL_SIZE
    assert not any(task.done() for task in waiting[1:])
    second.settle(300)
    assert [(await task).count for task in waiting[1:]] == [300, 300]


async def test_one_that_waited_and_fails_does_not_take_the_size_of_the_first(
    permits: Permits, estimates: Estimates
) -> None:
    first = await held_by(permits, estimates)
    second = HeldPermit(permits, estimate(estimates))
    waiting = asyncio.create_task(second.acquire_estimate())
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    second.give_up()
    assert estimate(estimates).try_take() is None  # the first is still under way
    first.settle(5)
    assert estimate(estimates).try_take() == 5


async def test_no_permits_for_the_estimate(permits: Permits, estimates: Estimates) -> None:
    permits.heap.timeout = 0.01
    everything = await permits.heap.acquire(HEAP)
    held = HeldPermit(permits, estimate(estimates))
    with pytest.raises(TooManyRequests, match="Failed due to heap memory limit exceeded") as raised:
        await held.acquire_estimate()
    assert (raised.value.code, raised.value.reason) == (ServerError.TooManyRequests, "heap_timeout")
    held.give_up()
    everything.release()
    assert permits.heap.acquired == 0
    assert estimate(estimates).try_take() == INITIAL_SIZE


async def test_no_permits_for_more(permits: Permits, estimates: Estimates) -> None:
    permits.heap.timeout = 0.01
    held = await held_by(permits, estimates)
    rest = await permits.heap.acquire(HEAP - INITIAL_SIZE)
    with pytest.raises(TooManyRequests, match="Failed due to heap memory limit exceeded"):
        await held.reserve(INITIAL_SIZE + 1)
    assert held.count == INITIAL_SIZE
    rest.release()
    held.give_up()
    assert permits.heap.acquired == 0


async def test_a_full_queue(permits: Permits) -> None:
    everything = await permits.heap.acquire(HEAP)
    waiting = [asyncio.create_task(held_by(permits, Estimates())) for _ in range(2)]
    await eventually(lambda: permits.heap.queue_size == 2)
    with pytest.raises(TooManyRequests, match="Failed due to heap memory limit exceeded") as raised:
        await held_by(permits, Estimates())
    assert raised.value.reason == "heap_queue"
    everything.release()
    for task in waiting:
        (await task).give_up()
    assert permits.heap.acquired == 0


async def test_more_than_there_is_runs_alone(permits: Permits, estimates: Estimates) -> None:
    held = await held_by(permits, estimates)
    await held.reserve(100 * HEAP)
    assert permits.heap.acquired == HEAP
    await held.reserve(200 * HEAP)
    held.settle(100 * HEAP)
    held.give_up()
    assert permits.heap.acquired == 0
    assert (await held_by(permits, estimates)).count == HEAP


async def test_two_reservations_at_once_lose_nothing(permits: Permits, estimates: Estimates) -> None:
    """Each replaces the permit: the one that waited must not forget the other's."""
    held = await held_by(permits, estimates)
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
    permits: Permits, estimates: Estimates, ending: str
) -> None:
    """A plugin may leave one behind; its permits would never be released."""
    held = await held_by(permits, estimates)
    rest = await permits.heap.acquire(HEAP - INITIAL_SIZE)
    left_behind = [asyncio.create_task(held.reserve(HEAP)) for _ in range(2)]
    await eventually(lambda: permits.heap.queue_size == 1)
    if ending == "hand over":
        held.settle(100)
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


async def test_granted_in_the_moment_of_the_end(permits: Permits, estimates: Estimates) -> None:
    held = await held_by(permits, estimates)
    rest = await permits.heap.acquire(HEAP - INITIAL_SIZE)
    late = asyncio.create_task(held.reserve(HEAP // 2))
    await eventually(lambda: permits.heap.queue_size == 1)
    rest.release()  # granted, but the one who waited has not run yet
    held.give_up()
    with pytest.raises(ListingFailed, match="This request is over"):
        await late
    assert permits.heap.acquired == 0


async def test_nothing_is_reserved_after_the_end(permits: Permits, estimates: Estimates) -> None:
    held = await held_by(permits, estimates)
    held.settle(0)
    permit = held.hand_over()
    assert permit is not None
    for size in (1, 10**9):
        with pytest.raises(ListingFailed, match="This request is over"):
            await held.reserve(size)
    held.give_up()
    assert permits.heap.acquired == 0


@pytest.mark.parametrize("size", [float("nan"), 1e6, "x", None, -1])
async def test_what_is_no_number_of_bytes_is_refused(
    permits: Permits, estimates: Estimates, size: Any
) -> None:
    """A NaN would be neither more nor less than anything, and so would every sum that it is part of."""
    held = await held_by(permits, estimates)
    with pytest.raises((TypeError, ValueError)):
        await held.reserve(size)
    assert held.count == permits.heap.acquired == INITIAL_SIZE
    held.give_up()
    assert permits.heap.acquired == 0


async def test_a_cancelled_reservation_leaves_what_was_held(permits: Permits, estimates: Estimates) -> None:
    held = await held_by(permits, estimates)
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


async def test_without_a_limit_nothing_waits(estimates: Estimates) -> None:
    permits = Permits(LimitsSettings(heap_permits=0))
    held = await held_by(permits, estimates)
    await held.reserve(10**12)
    held.settle(5)
    assert held.hand_over() is not None
    assert permits.heap.acquired == 5


async def test_leases_come_on_top_of_what_is_reserved(permits: Permits, estimates: Estimates) -> None:
    held = await held_by(permits, estimates)
    await held.reserve(50_000)
    await held.grow(30_000)
    await held.grow(20_000)
    assert held.count == 100_000
    await held.reserve(60_000)
    assert held.count == 110_000
    assert held.try_grow(10_000)
    other = permits.heap.try_acquire(HEAP - held.count)
    assert other is not None
    assert not held.try_grow(1)
    other.release()
    held.give_back(30_000)
    assert held.count == permits.heap.acquired == 90_000
    held.give_back(30_000)
    assert held.count == 60_000
    held.settle(0)
    held.give_back(0)
    permit = held.hand_over()
    assert permit is not None
    permit.release()
    assert permits.heap.acquired == 0
    assert (await held_by(permits, estimates)).count == 120_000  # the most at a time


async def test_a_lease_within_the_estimate_takes_nothing_more(permits: Permits, estimates: Estimates) -> None:
    held = await held_by(permits, estimates)
    await held.grow(INITIAL_SIZE)
    assert held.count == INITIAL_SIZE
    await held.grow(1)
    assert held.count == INITIAL_SIZE + 1
    held.give_back(INITIAL_SIZE + 1)
    assert held.count == INITIAL_SIZE
    held.give_up()


async def test_leases_at_once_are_all_counted(permits: Permits, estimates: Estimates) -> None:
    held = await held_by(permits, estimates)
    await asyncio.gather(*(held.grow(10_000) for _ in range(10)), *(held.reserve(n) for n in range(500)))
    assert held.count == 100_499
    other = permits.heap.try_acquire(HEAP - 100_499)
    assert other is not None
    waiting = asyncio.create_task(held.grow(10_000))
    await eventually(lambda: permits.heap.queue_size == 1)
    assert not held.try_grow(0)  # in turns
    held.give_back(50_000)  # while it waits for more: what it waits for is less now, and is there
    await asyncio.sleep(0)
    other.release()
    await waiting
    assert held.count == permits.heap.acquired == 60_499
    held.give_up()
    assert permits.heap.acquired == 0


async def test_nothing_is_leased_once_the_request_is_over(permits: Permits, estimates: Estimates) -> None:
    held = await held_by(permits, estimates)
    await held.grow(50_000)
    other = permits.heap.try_acquire(HEAP - held.count)
    assert other is not None
    waiting = asyncio.create_task(held.grow(10_000))
    await eventually(lambda: permits.heap.queue_size == 1)
    held.give_up()
    for attempt in (waiting, asyncio.create_task(held.grow(1))):
        with pytest.raises(ListingFailed, match="This request is over"):
            await attempt
    with pytest.raises(ListingFailed, match="This request is over"):
        held.try_grow(1)
    held.give_back(50_000)
    other.release()
    assert permits.heap.acquired == permits.heap.queue_size == 0


async def test_a_request_that_holds_nothing_gives_all_back(permits: Permits, estimates: Estimates) -> None:
    held = await held_by(permits, estimates)
    await held.reserve(50_000)
    held.release(30_000)
    assert permits.heap.acquired == held.count == 0
    assert (await held_by(permits, estimates)).count == 50_000
    with pytest.raises(ListingFailed, match="This request is over"):
        await held.reserve(1)


def test_what_is_taken_before_anything_is_known() -> None:
    assert unknown_size(Permits(LimitsSettings(heap_permits=4000))) == 1000
    selection = Listing.from_names(NAMESPACE, Mode.PERSISTENT, FEW).all()
    assert names_bytes(selection) == selection.fields_size + 160
