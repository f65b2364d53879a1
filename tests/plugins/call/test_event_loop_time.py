"""How long an async hook holds the event loop: each step by itself."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Generator
from types import SimpleNamespace
from typing import Any

import pytest
from structlog.testing import capture_logs

from broker_core.plugins.call import event_loop_time
from broker_core.plugins.call.event_loop_time import BLOCKED, LOG_EVERY, LoopTime, Stepwise


class Clock:
    """A clock that a test advances."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr(event_loop_time, "_clock", lambda: self.now)

    def pass_by(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


async def ran(start: Callable[[], Awaitable[Any]], on_step: Callable[[float], None] | None = None) -> Any:
    return await Stepwise(start, LoopTime("p", "list_topics"), on_step)


async def test_each_step_is_timed_and_waiting_is_not(clock: Clock) -> None:
    steps: list[float] = []
    gate = asyncio.Event()

    async def inner() -> int:
        clock.pass_by(2.0)
        await gate.wait()
        clock.pass_by(0.5)
        return 7

    async def hook() -> int:
        clock.pass_by(1.0)
        return await inner()

    held = LoopTime("p", "list_topics")
    task = asyncio.create_task(_awaited(Stepwise(hook, held, steps.append)))
    for _ in range(3):
        await asyncio.sleep(0)
    clock.pass_by(30.0)  # nobody's step
    gate.set()
    assert await task == 7
    assert steps == [3.0, 0.5]
    assert (held.seconds, held.longest, held.blocked) == (3.5, 3.0, 2)
    assert held.describe() == {"total_ms": 3500.0, "longest_ms": 3000.0, "blocked": 2}


async def _awaited(steps: Stepwise) -> Any:
    return await steps


async def test_the_call_that_gives_the_coroutine_is_a_step_too(clock: Clock) -> None:
    steps: list[float] = []

    def start() -> Awaitable[int]:
        clock.pass_by(4.0)
        return asyncio.sleep(0, 5)

    assert await ran(start, steps.append) == 5
    assert steps[0] == 4.0


async def test_any_awaitable_will_do() -> None:
    class Waits:
        def __await__(self) -> Generator[Any, Any, int]:
            yield from asyncio.sleep(0).__await__()
            return 3

    class WaitsBarely:
        def __await__(self) -> Any:
            return iter([None, None])  # waits twice for a turn of the loop, and gives nothing

    future = asyncio.get_running_loop().create_future()
    future.set_result(4)
    assert [await ran(Waits), await ran(lambda: future), await ran(WaitsBarely)] == [3, 4, None]


async def test_what_the_coroutine_raises_and_what_is_thrown_at_it_pass() -> None:
    async def fails() -> None:
        await asyncio.sleep(0)
        raise ValueError("its own")

    with pytest.raises(ValueError, match="its own"):
        await ran(fails)

    def refuses() -> Awaitable[None]:
        raise KeyError("before there is a coroutine")

    with pytest.raises(KeyError):
        await ran(refuses)

    cancelled = asyncio.Event()

    async def waits() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
        return "went on"

    task = asyncio.create_task(_awaited(Stepwise(waits, LoopTime("p", "h"))))
    for _ in range(3):
        await asyncio.sleep(0)
    task.cancel()
    assert await task == "went on"
    assert cancelled.is_set()


def test_closing_closes_the_coroutine() -> None:
    closed: list[bool] = []

    async def waits() -> None:
        try:
            await asyncio.sleep(0)
        finally:
            closed.append(True)

    steps = Stepwise(waits, LoopTime("p", "h"))
    steps.close()  # nothing has begun
    steps.send(None)
    steps.close()
    assert closed == [True]


def test_a_step_that_blocks_is_told_once_an_interval() -> None:
    held = LoopTime("mine", "visible")
    with capture_logs() as logs:
        held.add(BLOCKED * 0.99, 5.0)
        assert logs == []
        for number in range(4):
            held.add(BLOCKED, 10.0 + number)
        held.add(0.5, 10.0 + LOG_EVERY)
    assert [(entry["plugin"], entry["hook"], entry["seconds"], entry["not_logged"]) for entry in logs] == [
        ("mine", "visible", BLOCKED, 0),
        ("mine", "visible", 0.5, 3),
    ]
    assert "make its hook a plain function" in logs[0]["event"]
    assert held.blocked == 5


def _sleep() -> None:
    # Long beside BLOCKED: if a signal wakes the thread, its wait for a processor counts, although it would have slept.
    time.sleep(5 * BLOCKED)


def _compute() -> None:
    until = time.thread_time() + 2 * BLOCKED
    while time.thread_time() < until:
        pass


@pytest.mark.parametrize("work", [_sleep, _compute])
async def test_a_sleep_and_a_computation_block(work: Callable[[], None]) -> None:
    async def hook() -> None:
        work()

    held = LoopTime("p", "startup")
    await Stepwise(hook, held)
    assert held.blocked == 1


async def test_waiting_for_a_processor_does_not_block(monkeypatch: pytest.MonkeyPatch) -> None:
    wall, waited = 1000.0, 0
    monkeypatch.setattr(event_loop_time, "time", SimpleNamespace(perf_counter=lambda: wall))
    monkeypatch.setattr(event_loop_time._Account, "waited", lambda _: waited)

    async def hook() -> None:
        nonlocal wall, waited
        wall += 1.0
        waited += 950_000_000

    held = LoopTime("p", "startup")
    await Stepwise(hook, held)
    assert held.describe() == {"total_ms": 50.0, "longest_ms": 50.0, "blocked": 0}


def test_a_wait_for_a_processor_while_the_clock_is_read_counts_for_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wall, waited = 1000.0, iter([0, 500_000_000, 500_000_000])

    def perf_counter() -> float:
        nonlocal wall
        wall += 0.5  # the thread waits behind each of the first two looks
        return wall

    monkeypatch.setattr(event_loop_time, "time", SimpleNamespace(perf_counter=perf_counter))
    monkeypatch.setattr(event_loop_time._Account, "waited", lambda _: next(waited))
    assert event_loop_time._clock() == 1001.0 - 0.5
