"""Ends of credentials by a wall clock that tests move."""

from __future__ import annotations

import asyncio
import time

import pytest

from broker_core.service.live_sessions import Expiries
from tests.support.clock import SetClock
from tests.support.eventually import eventually


async def looked(expiries: Expiries) -> None:
    """The clock was looked at, without waiting for the timer."""
    timer = expiries._timer
    assert timer is not None
    timer.cancel()
    expiries._look()


async def test_what_is_due_is_called_back_once_in_order() -> None:
    clock, called = SetClock(), list[int]()
    expiries = Expiries(clock)
    for seconds in (30, 10, 20):
        expiries.call_at(clock.now + seconds, lambda seconds=seconds: called.append(seconds))  # type: ignore[misc]
    await looked(expiries)
    assert (called, len(expiries)) == ([], 3)
    clock.now += 20.0
    await looked(expiries)
    assert (called, len(expiries)) == ([10, 20], 1)
    clock.now -= 100.0
    await looked(expiries)
    clock.now += 1_000_000.0
    await looked(expiries)
    assert (called, len(expiries)) == ([10, 20, 30], 0)
    assert expiries._timer is None, "nothing waits: there is no timer"


async def test_the_clock_is_looked_at_each_second() -> None:
    called = asyncio.Event()
    expiries = Expiries()
    expiries.call_at(time.time() + 0.01, called.set)
    await asyncio.wait_for(called.wait(), 30)


async def test_one_that_is_cancelled_is_not_called() -> None:
    clock, called = SetClock(), list[str]()
    expiries = Expiries(clock)
    first = expiries.call_at(clock.now, lambda: called.append("first"))
    expiries.call_at(clock.now, lambda: called.append("second"))
    first.cancel()
    first.cancel()
    assert len(expiries) == 1
    await looked(expiries)
    assert (called, len(expiries)) == (["second"], 0)
    first.cancel()
    assert len(expiries) == 0


async def test_those_that_are_cancelled_take_no_memory_for_long() -> None:
    clock = SetClock()
    expiries = Expiries(clock)
    kept = expiries.call_at(clock.now + 5.0, lambda: None)
    for _ in range(10_000):
        expiries.call_at(clock.now + 3600.0, lambda: None).cancel()
    assert len(expiries._heap) < 200
    assert len(expiries) == 1
    kept.cancel()
    expiries.close()


async def test_one_that_is_called_back_may_wait_again() -> None:
    clock, called = SetClock(), list[str]()
    expiries = Expiries(clock)
    expiries.call_at(clock.now, lambda: expiries.call_at(clock.now + 1.0, lambda: called.append("again")))
    await looked(expiries)
    assert not called
    clock.now += 1.0
    await looked(expiries)
    assert called == ["again"]


async def test_a_crowd_that_is_due_together_leaves_turns_to_others() -> None:
    clock, called = SetClock(), 0
    expiries = Expiries(clock)

    def expired() -> None:
        nonlocal called
        called += 1
        until = time.perf_counter() + 0.0005
        while time.perf_counter() < until:
            pass

    for _ in range(200):
        expiries.call_at(clock.now, expired)
    await looked(expiries)
    assert 0 < called < 100, "the others have their turn first"
    await eventually(lambda: called == 200)
    assert len(expiries) == 0


async def test_after_the_end_nobody_is_called() -> None:
    clock, called = SetClock(), list[str]()
    expiries = Expiries(clock)
    one = expiries.call_at(clock.now, lambda: called.append("late"))
    expiries.close()
    one.cancel()
    assert expiries._timer is None
    assert (called, len(expiries)) == ([], 0)


async def test_one_that_fails_does_not_keep_the_others() -> None:
    clock, called = SetClock(), list[str]()
    expiries = Expiries(clock)

    def fails() -> None:
        raise KeyError("bug")

    expiries.call_at(clock.now - 1.0, fails)
    expiries.call_at(clock.now, lambda: called.append("second"))
    with pytest.raises(KeyError):
        await looked(expiries)
    await looked(expiries)
    assert called == ["second"]
