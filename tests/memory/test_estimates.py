"""Estimates of memory: the first request of a namespace runs alone; bounds, and hostile keys."""

from __future__ import annotations

import asyncio

import pytest

from broker_core.memory.estimates import INITIAL_SIZE, Estimate, Estimates
from broker_core.memory.permit_errors import PermitTimeout
from tests.support.clock import time_passes
from tests.support.eventually import turns


async def waiting_for(estimate: Estimate, timeout: float | None = None) -> asyncio.Task[int]:
    task = asyncio.create_task(estimate.take(timeout))
    await asyncio.sleep(0)
    return task


async def test_a_question_takes_what_it_took_the_last_time() -> None:
    estimates = Estimates()
    first = estimates.of("t/n", "a.*")
    assert await first.take() == INITIAL_SIZE == 10240
    first.learned(15_000)
    again = estimates.of("t/n", "a.*")
    assert again.try_take() == 15_000
    again.learned(5_000)  # exactly what it took, less as well
    assert estimates.of("t/n", "a.*").try_take() == 5_000
    assert len(estimates._peaks) == 1


async def test_a_new_question_takes_what_others_of_the_namespace_took() -> None:
    estimates = Estimates()
    estimates.of("t/n", "large").learned(64_000)
    assert estimates.of("t/n", "new").try_take() == 64_000
    estimates.of("t/n", "small").learned(1_000)
    assert estimates.of("t/n", "new").try_take() == 48_000  # a large one is forgotten by and by
    estimates.of("t/n", "larger").learned(90_000)
    assert estimates.of("t/n", "new").try_take() == 90_000  # and is learned at once
    assert estimates.of("t/other", "new").try_take() == 90_000  # as large as others, as long as nobody knows


async def test_what_nobody_knows_is_at_least_something() -> None:
    estimates = Estimates()
    estimates.of("t/n", "unused").learned(0)
    assert estimates.of("t/n", "new").try_take() == 0
    assert estimates.of("t/other", "new").try_take() == INITIAL_SIZE


async def test_before_anything_is_known_a_few_namespaces_are_asked_about_at_a_time() -> None:
    estimates = Estimates()
    running = [estimates.of(number, "q") for number in range(4)]
    assert [each.try_take() for each in running] == [INITIAL_SIZE] * 4
    others = [estimates.of(number, "q") for number in range(4, 20)]
    assert [each.try_take() for each in others] == [None] * 16
    waiting = [await waiting_for(each) for each in others]
    behind = await waiting_for(estimates.of(4, "another"))
    running[0].learned(50_000)
    assert await asyncio.gather(*waiting) == [50_000] * 16
    assert not behind.done()  # one first of its namespace all the same
    others[0].learned(60_000)
    assert await behind == 60_000


async def test_namespaces_that_hang_hold_others_off_for_a_moment_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    estimates = Estimates()
    hanging = [estimates.of(number, "q") for number in range(4)]
    assert [each.try_take() for each in hanging] == [INITIAL_SIZE] * 4
    other = estimates.of("other", "q")
    waiting = await waiting_for(other)
    behind = [await waiting_for(estimates.of(f"behind {number}", "q")) for number in range(3)]
    gone = estimates.of("gone", "q")
    cancelled = await waiting_for(gone)
    await turns()
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    gone.failed()
    time_passes(monkeypatch, 1.1)
    assert await waiting == INITIAL_SIZE
    await turns()
    assert not any(task.done() for task in behind)  # one at a time
    for each in (*hanging, other):
        each.failed()
    assert await asyncio.gather(*behind) == [INITIAL_SIZE] * 3
    assert estimates.everywhere.running == 3


async def test_one_runs_first_whatever_the_others_ask() -> None:
    estimates = Estimates()
    first = estimates.of("t/n", "a.*")
    assert first.try_take() == INITIAL_SIZE
    others = [estimates.of("t/n", f"{number}.*") for number in range(5)]
    assert [other.try_take() for other in others] == [None] * 5
    waiting = [await waiting_for(other) for other in others]
    elsewhere = estimates.of("t/other", "a.*")
    assert elsewhere.try_take() == INITIAL_SIZE
    first.learned(70_000)
    assert await asyncio.gather(*waiting) == [70_000] * 5


async def test_after_a_failure_one_of_those_that_wait_takes_its_place() -> None:
    estimates = Estimates()
    first = estimates.of("t/n", "q")
    assert first.try_take() == INITIAL_SIZE
    others = [estimates.of("t/n", "q") for _ in range(4)]
    waiting = [await waiting_for(other) for other in others]
    first.failed()
    first.failed()  # once is enough, more is harmless
    await turns()
    assert [task.done() for task in waiting] == [True, False, False, False]
    assert await waiting[0] == INITIAL_SIZE
    others[0].failed()
    await turns()
    assert [task.done() for task in waiting] == [True, True, False, False]
    others[1].learned(500)
    assert await asyncio.gather(*waiting[2:]) == [500, 500]


async def test_answers_without_a_listing_let_more_and_more_go_on() -> None:
    estimates = Estimates()
    running = [estimates.of("t/n", "q")]
    assert running[0].try_take() == INITIAL_SIZE
    others = [estimates.of("t/n", "q") for _ in range(20)]
    waiting = [await waiting_for(other) for other in others]
    done = 0
    for expected in (2, 6, 20):  # 2 at a time, then 4, then 8 and those that follow them
        for estimate in running:
            estimate.nothing_made()
        await turns()
        before, done = done, sum(task.done() for task in waiting)
        running = others[before:done]
        assert done >= expected
    assert {await task for task in waiting} == {INITIAL_SIZE}
    # A failure begins anew: its cause may be what they took.
    running[0].failed()
    for estimate in running[1:]:
        estimate.nothing_made()
    assert estimates.of("t/n", "q").try_take() == INITIAL_SIZE


async def test_who_waited_and_was_cancelled_takes_nobodys_place() -> None:
    estimates = Estimates()
    first = estimates.of("t/n", "q")
    assert first.try_take() == INITIAL_SIZE
    second, third = estimates.of("t/n", "q"), estimates.of("t/n", "q")
    waiting = await waiting_for(second)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    second.failed()
    assert third.try_take() is None  # the first is still under way
    last = await waiting_for(third)
    first.learned(5)
    assert await last == 5


async def test_one_cancelled_in_the_moment_of_its_turn_hands_it_on() -> None:
    estimates = Estimates()
    first = estimates.of("t/n", "q")
    assert first.try_take() == INITIAL_SIZE
    second = await waiting_for(estimates.of("t/n", "q"))
    third = await waiting_for(estimates.of("t/n", "q"))
    first.failed()  # it is the second's turn, which has not run since
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    assert await asyncio.wait_for(third, 60) == INITIAL_SIZE


async def test_waiting_has_an_end() -> None:
    estimates = Estimates()
    assert estimates.of("t/n", "q").try_take() == INITIAL_SIZE
    with pytest.raises(PermitTimeout):
        await estimates.of("t/n", "q").take(0.01)
    assert estimates.of("t/n", "q").try_take() is None


async def test_only_so_much_is_remembered_and_nobody_who_waits_is_lost() -> None:
    estimates = Estimates(max_entries=3)
    first = estimates.of("busy", "q")
    assert first.try_take() == INITIAL_SIZE
    waiting = await waiting_for(estimates.of("busy", "q"))
    for number in range(50):
        estimates.of(f"n{number}", number).learned(number)
    assert len(estimates._peaks) == 3
    assert len(estimates._namespaces) == 3
    assert estimates.of("n49", 49).try_take() == 49
    assert estimates.of("busy", "other").try_take() is None
    first.learned(7)
    assert await waiting == 7


async def test_many_in_use_are_kept_beyond_the_bound_and_never_scanned() -> None:
    estimates = Estimates(max_entries=3)
    estimates.of("known", "q").learned(INITIAL_SIZE)
    running = []
    for number in range(100):
        running.append(estimates.of(number, number))
        assert running[-1].try_take() == INITIAL_SIZE
    assert len(estimates._namespaces) == 100
    for estimate in running:
        estimate.learned(1)
    for number in range(100, 120):
        estimates.of(number, "q")
    assert len(estimates._namespaces) == 3


async def test_long_keys_of_clients_are_not_kept() -> None:
    estimates = Estimates()
    pattern = "x" * 1_000_000
    estimates.of("t/n", ("t/n", pattern)).learned(5)
    assert all(isinstance(key, int) for key in estimates._peaks)
    assert estimates.of("t/n", ("t/n", pattern)).try_take() == 5


async def test_what_could_not_be_had_for_others_sake_is_asked_for_no_more() -> None:
    """A question that fails learns nothing, so the guess must fall by itself; what is known stays."""
    estimates = Estimates()
    estimates.of("t/large", "all").learned(1_000_000)
    for expected in (1_000_000, 750_000, 562_500):
        new = estimates.of("t/new", "new")
        assert await new.take() == expected
        new.refused()
        new.failed()
    assert estimates.of("t/large", "all").try_take() == 1_000_000
    estimates.of("t/large", "all").refused()  # it took so much itself
    assert estimates.of("t/large", "all").try_take() == 1_000_000
    other = estimates.of("t/large", "other")
    assert other.try_take() == 1_000_000
    other.refused()
    assert estimates.of("t/large", "other").try_take() == 750_000
