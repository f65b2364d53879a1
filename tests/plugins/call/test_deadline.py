"""The deadline of one call: it pauses while the plugin waits for permits."""

from __future__ import annotations

import asyncio

import pytest

from broker_core.errors import TooManyRequests
from broker_core.plugins.call.plugin_runner import Deadline
from tests.support.clock import time_passes
from tests.support.eventually import eventually
from tests.support.plugins import asked


async def test_waiting_for_permits_is_not_the_plugins_time(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()
    permits = asyncio.Event()
    sizes: list[int] = []

    async def reserve(size: int) -> None:
        sizes.append(size)
        await permits.wait()

    deadline = Deadline(loop, 60)
    request = asked(reserve_bytes=reserve).pausing(deadline.paused)
    assert request == asked()

    async def plugin() -> str:
        await asyncio.gather(request.reserve(10), request.reserve(20))
        return "answer"

    work = loop.create_task(plugin())
    in_time = loop.create_task(deadline.wait(work))
    await eventually(lambda: len(sizes) == 2)
    time_passes(monkeypatch, 61)
    for _ in range(5):
        await asyncio.sleep(0)  # a timer that is due would go off
    permits.set()
    assert await in_time is True
    assert (work.result(), sizes) == ("answer", [10, 20])


async def test_the_clock_goes_on_after_the_permits() -> None:
    loop = asyncio.get_running_loop()
    deadline = Deadline(loop, 0.03)
    request = asked().pausing(deadline.paused)

    async def plugin() -> None:
        await request.reserve(1)
        await asyncio.Event().wait()

    work = loop.create_task(plugin())
    assert await deadline.wait(work) is False
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work


async def test_an_error_of_the_permits_is_known() -> None:
    loop = asyncio.get_running_loop()
    refused = TooManyRequests("no", reason="heap")

    async def reserve(size: int) -> None:
        raise refused

    deadline = Deadline(loop, 1)
    with pytest.raises(TooManyRequests):
        await asked(reserve_bytes=reserve).pausing(deadline.paused).reserve(5)
    assert deadline.raised(refused)
    assert not deadline.raised(TooManyRequests("no", reason="heap"))


async def test_an_error_that_the_plugins_argument_deserved_is_the_plugins() -> None:
    async def reserve(size: int) -> None:
        raise TypeError(size)

    deadline = Deadline(asyncio.get_running_loop(), 1)
    with pytest.raises(TypeError) as raised:
        await asked(reserve_bytes=reserve).pausing(deadline.paused).reserve(5)
    assert not deadline.raised(raised.value)


async def test_a_thread_with_its_own_loop_reserves_on_the_brokers() -> None:
    loop = asyncio.get_running_loop()
    seen: list[asyncio.AbstractEventLoop] = []

    async def reserve(size: int) -> None:
        seen.append(asyncio.get_running_loop())

    request = asked(reserve_bytes=reserve).pausing(Deadline(loop, 1).paused)
    await asyncio.to_thread(lambda: asyncio.run(request.reserve(5)))
    assert seen == [loop]


async def test_time_on_the_loop_before_the_clock_runs_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    deadline = Deadline(asyncio.get_running_loop(), 1.0)
    deadline.held_loop(0.6)
    assert not deadline.overrun
    deadline.held_loop(0.6)
    assert deadline.overrun
    done = asyncio.get_running_loop().create_future()
    done.set_result(None)
    assert await deadline.wait(done) is False


async def test_only_the_step_that_crosses_the_deadline_overruns(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()
    for held, overrun in ((61.5, True), (0.5, False)):
        deadline, work = Deadline(loop, 60.0), loop.create_future()
        waiting = asyncio.create_task(deadline.wait(work))
        for _ in range(3):
            await asyncio.sleep(0)
        with monkeypatch.context() as patch:
            time_passes(patch, 61)
            deadline.held_loop(held)  # all of the time, or the end of it, when it was over already
            assert deadline.overrun is overrun
            work.set_result(None)
            assert await waiting is not overrun
