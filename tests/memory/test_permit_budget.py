"""Memory permits: the scenes of Pulsar's own tests, and the differences of this server.

docs/reference/pulsar-behaviour.md#the-memory-limiter
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_core.memory.permit_budget import Permit, PermitBudget
from broker_core.memory.permit_errors import PermitCancelled, PermitQueueFull, PermitsClosed, PermitTimeout
from tests.support.clock import AGES, time_passes
from tests.support.eventually import turns


async def started(demand: Coroutine[Any, Any, Permit]) -> asyncio.Task[Permit]:
    task = asyncio.create_task(demand)
    await turns()
    return task


async def wanted(permits: PermitBudget, n: int, gone: asyncio.Future[None]) -> Permit:
    """Permits of demands that may go before they come."""
    return await permits.update(await permits.acquire(0), n, cancelled=gone)


def budget(maximum: int, queue_limit: int = 10, timeout: float = 25.0) -> PermitBudget:
    return PermitBudget(maximum, queue_limit=queue_limit, timeout=timeout, name="test")


async def test_acquire_and_release_are_counted() -> None:
    permits = budget(1000)
    permit = await permits.acquire(100)
    assert (permits.available, permits.acquired, permit.count) == (900, 100, 100)
    permit.release()
    assert (permits.available, permits.acquired, permit.count) == (1000, 0, 0)


async def test_releasing_twice_changes_nothing() -> None:
    permits = budget(1000)
    permit = await permits.acquire(100)
    other = await permits.acquire(50)
    permits.release(permit)
    permits.release(permit)
    assert permits.available == 950
    other.release()


async def test_a_negative_demand_is_an_error() -> None:
    permits = budget(1000)
    with pytest.raises(ValueError, match="Invalid negative permits value: -1"):
        await permits.acquire(-1)
    with pytest.raises(ValueError, match="Invalid negative permits value: -5"):
        await permits.update(await permits.acquire(3), -5)


@pytest.mark.parametrize("demand", [float("nan"), float("inf"), 1e6, "1", None])
@pytest.mark.parametrize("maximum", [1000, 0])
async def test_a_demand_that_is_no_whole_number_is_an_error_and_counts_nothing(
    demand: Any, maximum: int
) -> None:
    permits = budget(maximum)
    held = await permits.acquire(10)
    for refused in (permits.acquire, partial(permits.update, held)):
        with pytest.raises(TypeError):
            await refused(demand)
    for refused_at_once in (permits.try_acquire, partial(permits.try_update, held)):
        with pytest.raises(TypeError):
            refused_at_once(demand)
    assert held.count == 10
    held.release()
    assert permits.acquired == 0


async def test_other_whole_numbers_become_plain_ones() -> None:
    permits = budget(1000)
    held = await permits.acquire(np.int64(10))  # type: ignore[arg-type]  # as callers that are not checked do
    held = await permits.update(held, True)
    assert type(held.count) is type(permits.acquired) is int
    assert held.count == permits.acquired == 1


async def test_no_permits_complete_at_once_even_behind_others() -> None:
    permits = budget(10)
    held = await permits.acquire(10)
    waiting = await started(permits.acquire(1))
    assert (await permits.acquire(0)).count == 0
    held.release()
    (await waiting).release()


async def test_a_demand_above_the_maximum_runs_alone() -> None:
    permits = budget(10)
    small = await permits.acquire(1)
    large = await started(permits.acquire(1_000_000))
    assert not large.done()
    small.release()
    permit = await large
    assert permit.count == 10
    assert permits.try_acquire(1) is None
    permit.release()
    assert permits.available == 10


async def test_unlimited_never_waits() -> None:
    permits = budget(0, queue_limit=1)
    gone = asyncio.get_running_loop().create_future()
    gone.set_result(None)
    permit = await wanted(permits, 1 << 60, gone)
    assert permit.count == 1 << 60
    assert (permits.available, permits.queue_size) == (sys.maxsize - (1 << 60), 0)
    updated = await permits.update(permit, 5)
    assert (permit.count, updated.count) == (0, 5)
    updated.release()
    assert updated.count == 0


async def test_the_queue_has_a_limit() -> None:
    permits = budget(10, queue_limit=2)
    held = await permits.acquire(10)
    waiting = [await started(permits.acquire(1)) for _ in range(2)]
    with pytest.raises(PermitQueueFull):
        await permits.acquire(1)
    held.release()
    for task in waiting:
        (await task).release()
    assert permits.available == 10


async def test_a_queue_limit_of_zero_is_no_limit() -> None:
    permits = budget(10, queue_limit=0)
    held = await permits.acquire(10)
    waiting = [asyncio.create_task(permits.acquire(1)) for _ in range(300)]
    await turns()
    assert permits.queue_size == 300
    held.release()
    for task in waiting:
        (await task).release()


async def test_a_demand_times_out_and_leaves_its_place() -> None:
    waits: list[float] = []
    timeouts: list[float] = []
    permits = budget(10, timeout=0.02)
    permits.on_wait, permits.on_timeout = waits.append, timeouts.append
    held = await permits.acquire(10)
    with pytest.raises(PermitTimeout, match="Permit acquisition timed out"):
        await permits.acquire(1)
    assert permits.queue_size == 0
    assert (waits, timeouts) == ([], [0.02])
    held.release()
    (await permits.acquire(10)).release()


async def test_a_head_that_times_out_lets_its_followers_in(monkeypatch: pytest.MonkeyPatch) -> None:
    permits = budget(10)
    held = await permits.acquire(6)
    head = await started(permits.acquire(10, timeout=60))
    follower = await started(permits.acquire(4, timeout=AGES))
    assert not follower.done()
    time_passes(monkeypatch, 61)
    with pytest.raises(PermitTimeout):
        await head
    assert (await follower).count == 4
    assert held.count == 6


async def test_who_waits_is_served_in_order() -> None:
    permits = budget(1000)
    held = [await permits.acquire(200) for _ in range(5)]
    order: list[int] = []

    async def one(number: int) -> Permit:
        permit = await permits.acquire(150)
        order.append(number)
        return permit

    waiting = [await started(one(number)) for number in range(3)]
    for permit in held:
        permit.release()
        await turns()
    await asyncio.gather(*waiting)
    assert order == [0, 1, 2]


async def test_connections_take_turns() -> None:
    permits = budget(10, queue_limit=100)
    held = await permits.acquire(10)
    order: list[str] = []

    async def one(key: str) -> Permit:
        permit = await permits.acquire(10, key=key)
        permit.release()
        order.append(key)
        return permit

    waiting = [await started(one("many")) for _ in range(5)]
    waiting += [await started(one(key)) for key in ("other", "third", "other")]
    held.release()
    await turns()
    waiting.append(await started(one("late")))
    await asyncio.gather(*waiting)
    assert order[:5] == ["many", "other", "third", "many", "other"]
    assert sorted(order[5:]) == ["late", "many", "many", "many"]
    assert (permits.queue_size, permits.acquired) == (0, 0)


async def test_who_comes_late_does_not_wait_for_the_rounds_of_others() -> None:
    permits = budget(10, queue_limit=100)
    held = await permits.acquire(10)
    order: list[str] = []

    async def one(key: str) -> Permit:
        permit = await permits.acquire(10, key=key)
        order.append(key)
        return permit

    waiting = [await started(one("many")) for _ in range(20)]
    held.release()
    for number in range(3):
        (await waiting[number]).release()
        await turns()
    late = await started(one("late"))
    (await waiting[3]).release()
    (await waiting[4]).release()
    (await late).release()
    assert order.index("late") <= 5
    for task in waiting[5:]:
        (await task).release()
    assert permits.acquired == 0


async def test_small_demands_pass_a_large_one_that_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    permits = budget(160, timeout=AGES)
    held = await permits.acquire(100)
    large = await started(permits.acquire(120))
    middle = await started(permits.acquire(11))  # a sixteenth of the budget is 10
    small = permits.try_acquire(10)
    assert small is not None
    grown = permits.try_update(small, 20)
    assert grown is not None
    filling = [permits.try_acquire(10) for _ in range(4)]
    assert permits.available == 0
    waits = await started(permits.acquire(10))
    assert not waits.done()
    grown.release()  # room for it comes, and neither for the large one nor for the middle one behind it
    assert (await waits).count == 10
    assert not large.done()
    assert not middle.done()
    time_passes(monkeypatch, AGES / 2)
    assert (
        permits.try_acquire(1) is None
    )  # the large one has waited half of its time: nobody passes it any more
    behind = await started(permits.acquire(1))
    for permit in (held, *filling):
        assert permit is not None
        permit.release()
    assert (await large).count == 120
    assert (await middle).count == 11
    assert (await behind).count == 1
    (await waits).release()


async def test_the_head_of_the_line_blocks() -> None:
    permits = budget(10)
    held = [await permits.acquire(2) for _ in range(5)]
    first, second, third = [await started(permits.acquire(n)) for n in (3, 4, 2)]
    done = []
    for permit in held:
        permit.release()
        await turns()
        done.append([task.done() for task in (first, second, third)])
    assert done == [
        [False, False, False],
        [True, False, False],
        [True, False, False],
        [True, True, False],
        [True, True, True],
    ]


async def test_room_is_what_can_be_acquired_at_once() -> None:
    permits = budget(10)
    assert permits.has_room(10)
    assert permits.has_room(1000)  # which means all
    held = permits.try_acquire(6)
    assert held is not None
    assert permits.has_room(0)
    assert permits.has_room(4)
    assert not permits.has_room(5)
    assert permits.acquired == 6
    waiting = await started(permits.acquire(5))
    assert not permits.has_room(1)
    assert permits.granted_at_once == 1
    permits.count_granted()
    permits.count_granted(3)
    assert permits.granted_at_once == 5
    held.release()
    (await waiting).release()
    assert budget(0).has_room(1_000_000)
    permits.close()
    with pytest.raises(PermitsClosed):
        permits.has_room(1)


async def test_try_acquire_never_overtakes() -> None:
    permits = budget(10)
    held = permits.try_acquire(6)
    assert held is not None
    waiting = await started(permits.acquire(5))
    assert permits.try_acquire(1) is None
    held.release()
    assert (await waiting).count == 5
    assert permits.try_acquire(5) is not None
    assert permits.granted_at_once == 2


async def test_update_up_and_down() -> None:
    permits = budget(10)
    five = await permits.acquire(5)
    eight = await permits.update(five, 8)
    assert (five.count, eight.count, permits.available) == (0, 8, 2)
    two = await permits.acquire(2)
    waiting = await started(permits.acquire(1))
    assert not waiting.done()
    three = await permits.update(eight, 3)
    assert (await waiting).count == 1
    assert permits.available == 4
    five.release()
    eight.release()
    assert permits.available == 4
    all_that_is_left = permits.try_update(three, 3 + 4)
    assert all_that_is_left is not None
    assert permits.available == 0
    assert permits.try_update(all_that_is_left, 8) is None
    three = await permits.update(all_that_is_left, 3)
    nothing = await permits.update(three, 0)
    assert (nothing.count, permits.available) == (0, 7)
    two.release()


async def test_update_waits_for_the_difference_and_keeps_what_it_has() -> None:
    permits = budget(10)
    first, second = await permits.acquire(4), await permits.acquire(5)
    update = await started(permits.update(first, 8))
    assert (update.done(), first.count, permits.acquired) == (False, 4, 9)
    second.release()
    updated = await update
    assert (first.count, updated.count, permits.available) == (0, 8, 2)


async def test_an_update_of_a_permit_that_is_released_meanwhile_takes_the_whole() -> None:
    permits = budget(10)
    first, second = await permits.acquire(4), await permits.acquire(6)
    update = await started(permits.update(first, 5))
    first.release()
    assert not update.done()
    second.release()
    assert (await update).count == 5
    assert permits.available == 5


@pytest.mark.parametrize("how", ["timeout", "future", "task"])
async def test_a_failed_update_leaves_the_old_permit(how: str) -> None:
    permits = budget(10, timeout=0.01 if how == "timeout" else 25.0)
    first, second = await permits.acquire(4), await permits.acquire(6)
    gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    update = await started(permits.update(first, 8, cancelled=gone))
    if how == "future":
        gone.set_result(None)
    elif how == "task":
        update.cancel()
    expected = {"timeout": PermitTimeout, "future": PermitCancelled, "task": asyncio.CancelledError}[how]
    with pytest.raises(expected):
        await update
    assert (first.count, permits.acquired, permits.queue_size) == (4, 10, 0)
    first.release()
    second.release()
    assert permits.available == 10


async def test_holders_that_all_wait_for_more_do_not_wait_for_each_other() -> None:
    """In Pulsar's limiter they wait until their time is over: each holds what the other one lacks."""
    permits = budget(100)
    first, second = await permits.acquire(10), await permits.acquire(10)
    one = await started(permits.update(first, 1000))
    assert not one.done()  # the other one still runs, and will release
    two = await started(permits.update(second, 95))
    permit = await one
    assert permit.count == 90  # all there is but what the other one keeps
    assert (permits.acquired, two.done()) == (100, False)
    permit.release()
    assert (await two).count == 95


async def test_a_large_newcomer_at_the_head_does_not_lock_the_holders_behind_it() -> None:
    permits = budget(10)
    held = await permits.acquire(4)
    newcomer = await started(permits.acquire(10))
    update = await started(permits.update(held, 9))
    permit = await update
    assert (permit.count, newcomer.done()) == (9, False)
    permit.release()
    assert (await newcomer).count == 10


async def test_nobody_waits_for_what_may_be_kept_for_good() -> None:
    """What outlives its request makes the maximum less, for later demands and for those that wait already."""
    permits = budget(100)
    one = await permits.acquire(60)
    waiting = await started(permits.acquire(90))
    kept = permits.keep(one, 50)
    await turns()
    assert not waiting.done()  # the rest of the request is given back, as ever
    one.release()
    whole = await waiting
    assert (whole.count, permits.available) == (50, 0)
    growing = await started(permits.update(whole, 100))
    assert (await growing).count == 50  # it is alone, and nobody will give it more
    (await growing).release()
    again = permits.try_acquire(200)
    assert again is not None
    assert again.count == 50
    again.release()
    kept.release()
    assert (await permits.acquire(100)).count == 100


async def test_what_takes_nearly_all_for_good_keeps_large_demands_out_and_lets_small_ones_in() -> None:
    permits = budget(100)
    one = await permits.acquire(90)
    kept = permits.keep(one, 90)
    large = await started(permits.acquire(60))  # 25 at the least
    await turns()
    assert not large.done()
    small = await permits.acquire(5)
    assert small.count == 5
    kept.release()
    assert (await large).count == 60


async def test_a_client_that_goes_gives_its_place_up_at_once() -> None:
    permits = budget(10)
    held = await permits.acquire(5)
    gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    head = await started(wanted(permits, 10, gone))
    follower = await started(permits.acquire(5))
    gone.set_result(None)
    assert (await follower).count == 5
    with pytest.raises(PermitCancelled, match="Permit acquisition was cancelled"):
        await head
    with pytest.raises(PermitCancelled):
        await wanted(permits, 1, gone)
    held.release()


async def test_a_cancelled_task_gives_its_place_up_at_once() -> None:
    permits = budget(10)
    held = await permits.acquire(5)
    head = await started(permits.acquire(10))
    follower = await started(permits.acquire(5))
    head.cancel()
    assert (await follower).count == 5
    assert head.cancelled()
    assert permits.acquired == 10
    held.release()


@pytest.mark.parametrize("update", [False, True])
async def test_a_task_cancelled_in_the_moment_of_its_grant_leaks_nothing(update: bool) -> None:
    permits = budget(10)
    held, old = await permits.acquire(6), await permits.acquire(4)
    waiting = await started(permits.update(old, 8) if update else permits.acquire(5))
    follower = await started(permits.acquire(6))
    held.release()  # grants, and before the task runs again:
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert (await follower).count == 6
    assert old.count == 4
    assert permits.acquired == 10


async def test_permits_of_another_budget_are_refused() -> None:
    heap, direct = budget(10), budget(10)
    permit = await heap.acquire(5)
    with pytest.raises(ValueError, match="Invalid permit type"):
        direct.release(permit)
    with pytest.raises(ValueError, match="Invalid permit type"):
        await direct.update(permit, 1)
    assert (heap.available, direct.available) == (5, 10)


async def test_close_fails_who_waits_and_who_comes() -> None:
    permits = budget(10)
    held = await permits.acquire(5)
    waiting = [await started(permits.acquire(n)) for n in (10, 2)]
    permits.close()
    for task in waiting:
        with pytest.raises(PermitsClosed):
            await task
    with pytest.raises(PermitsClosed):
        permits.try_acquire(1)
    held.release()
    assert permits.available == 10


async def test_waiting_is_observed() -> None:
    waits: list[float] = []
    permits = PermitBudget(10)
    permits.on_wait = waits.append
    held = await permits.acquire(10)
    waiting = await started(permits.acquire(1))
    held.release()
    await waiting
    assert len(waits) == 1
    assert 0 <= waits[0] < 5


async def test_many_at_once_end_at_full_availability() -> None:
    permits = budget(100, queue_limit=0)

    async def work(number: int) -> None:
        for turn in range(10):
            permit = await permits.acquire(1 + (number * 7 + turn) % 40)
            await asyncio.sleep(0)
            permit = await permits.update(permit, (number * 13 + turn) % 60)
            await asyncio.sleep(0)
            permit.release()

    await asyncio.gather(*(work(number) for number in range(20)))
    assert (permits.available, permits.queue_size) == (100, 0)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["acquire", "update", "release", "cancel", "client", "try", "keep"]),
        st.integers(0, 14),
        st.integers(0, 9),
    ),
    max_size=60,
)


@given(STEPS)
def test_nothing_leaks_and_nothing_is_overdrawn(steps: list[tuple[str, int, int]]) -> None:
    """Whatever happens in whatever order: the sum fits, the maximum holds, the queue moves, all of it comes back."""

    async def run() -> None:
        permits = budget(10, queue_limit=5)
        held: list[Permit] = []
        waiting: list[tuple[asyncio.Task[Permit], asyncio.Future[None]]] = []

        async def start(demand: Coroutine[Any, Any, Permit], gone: asyncio.Future[None]) -> None:
            waiting.append((await started(demand), gone))

        async def check() -> None:
            await turns()
            for pair in list(waiting):
                if pair[0].done():
                    waiting.remove(pair)
                    if not pair[0].cancelled() and pair[0].exception() is None:
                        held.append(pair[0].result())
            live = [permit.count for permit in held]
            assert permits.acquired == sum(live) <= 10
            assert permits.queue_size == len(waiting) <= 5
            assert permits._held_by_waiting == sum(p.count for p in held if p.updates)
            if waiting:
                head = permits._queue.items[0]
                assert head.need(permits._most) > permits.available
                assert permits._held_by_waiting < permits.acquired
            assert permits._kept == sum(permit.count for permit in held if permit.lasts)

        for what, n, which in steps:
            gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            if what == "acquire":
                await start(wanted(permits, n, gone), gone)
            elif what == "try":
                permit = permits.try_acquire(n)
                held += [permit] if permit else []
            elif what == "update" and held and not held[which % len(held)].lasts:
                await start(permits.update(held[which % len(held)], n, cancelled=gone), gone)
            elif what == "keep" and held and not held[which % len(held)].lasts:
                held.append(permits.keep(held[which % len(held)], n))
            elif what == "release" and held:
                held[which % len(held)].release()
            elif what == "cancel" and waiting:
                waiting[which % len(waiting)][0].cancel()
            elif what == "client" and waiting:
                waiting[which % len(waiting)][1].set_result(None)
            await check()
        while held or waiting:
            for permit in held:
                permit.release()
            held.clear()
            await check()
        assert (permits.available, permits.queue_size) == (10, 0)

    asyncio.run(run())


async def test_a_permit_that_is_released_between_grant_and_cancellation_leaves_nothing() -> None:
    budget = PermitBudget(100)
    permit, other = await budget.acquire(10), await budget.acquire(90)
    update = asyncio.create_task(budget.update(permit, 50))
    await asyncio.sleep(0)
    other.release()  # grants the update, whose task has not run since
    update.cancel()
    permit.release()
    with pytest.raises(asyncio.CancelledError):
        await update
    assert (budget.acquired, permit.count) == (0, 0)


async def test_a_part_of_a_permit_is_released_by_itself() -> None:
    permits = budget(100)
    permit = await permits.acquire(60)
    part = permits.split(permit, 20)
    assert (permit.count, part.count, permits.acquired) == (40, 20, 60)
    assert permits.split(part, 50).count == 20, "at most what there is"
    assert part.count == 0
    permit.release()
    assert permits.acquired == 20
    with pytest.raises(ValueError, match="is not of"):
        budget(10).split(permit, 1)


async def test_a_part_of_a_permit_that_waits_for_more_does_not_wait() -> None:
    permits = budget(100)
    permit, other = await permits.acquire(60), await permits.acquire(40)
    waiting = await started(permits.update(permit, 80))
    part = permits.split(permit, 10)
    assert not waiting.done()
    other.release()
    assert (await waiting).count == 80
    assert permits.acquired == 90
    part.release()
    assert permits.acquired == 80


async def test_another_size_counts_what_is_held_already_and_lets_go_who_fits_now() -> None:
    permits = budget(0)
    held = await permits.acquire(60)
    permits.resize(100, timeout=5.0)
    assert (permits.acquired, permits.available) == (60, 40)
    waiting = await started(permits.acquire(100))
    assert permits.queue_size == 1
    permits.resize(160, timeout=5.0)
    more = await waiting
    permits.resize(50, timeout=5.0)
    assert permits.available == -110
    for permit in (held, more):
        permit.release()
    assert permits.available == 50


async def test_another_size_has_another_limit_of_the_queue_or_none() -> None:
    permits = budget(1, queue_limit=1)
    held = await permits.acquire(1)
    waiting = [await started(permits.acquire(1))]
    with pytest.raises(PermitQueueFull):
        await permits.acquire(1)
    permits.resize(1, timeout=5.0)
    waiting += [await started(permits.acquire(1)) for _ in range(3)]
    assert permits.queue_size == len(waiting)
    held.release()
    for each in waiting:
        (await each).release()
    assert permits.available == 1
