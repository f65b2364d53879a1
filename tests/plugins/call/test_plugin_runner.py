"""Running one function of a plugin: its result, or one of three errors."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from broker_core.plugins.call.event_loop_time import LoopTime
from broker_core.plugins.call.plugin_runner import Deadline, NotInTime, PluginRunner, contained, result_of
from broker_core.plugins.call.plugin_threads import PluginThreads, RaisedByPlugin, ThreadsFull
from tests.support.eventually import eventually
from tests.support.plugins import PluginOf, loaded


async def run(function: Callable[..., Any], runner: PluginRunner, seconds: float = 10.0) -> Any:
    implementation = loaded(PluginOf(startup=function)).implementations["broker_core_startup"]
    values = {name: name.upper() for name in implementation.arguments}
    deadline = Deadline(asyncio.get_running_loop(), seconds)
    return await runner.run(implementation, values, deadline, LoopTime("p", "startup"))


async def later(broker: object) -> tuple[object, str]:
    return broker, threading.current_thread().name


def in_a_thread(settings: object) -> tuple[object, str]:
    return settings, threading.current_thread().name


def passes_on(broker: object) -> Any:
    return later(broker)


async def test_the_result_of_each_kind_of_function() -> None:
    runner = PluginRunner("p")
    here = threading.current_thread().name
    assert await run(later, runner) == ("BROKER", here)
    assert await run(in_a_thread, runner) == ("SETTINGS", "plugin-p-1")
    assert await run(passes_on, runner) == ("BROKER", here)
    await runner.close()


async def test_what_it_raises_is_carried() -> None:
    async def cancels_itself() -> None:
        raise asyncio.CancelledError

    def leaves() -> None:
        raise SystemExit(3)

    runner = PluginRunner("p")
    for function, kind in ((cancels_itself, asyncio.CancelledError), (leaves, SystemExit)):
        with pytest.raises(RaisedByPlugin) as raised:
            await run(function, runner)
        assert type(raised.value.error) is kind


async def test_work_beyond_its_deadline_is_left_and_counted() -> None:
    gate, event = threading.Event(), asyncio.Event()

    async def stays() -> None:
        while not event.is_set():
            try:
                await event.wait()
            except asyncio.CancelledError:
                pass

    runner = PluginRunner("p")
    for function in (stays, lambda: gate.wait(30)):
        with pytest.raises(NotInTime):
            await run(function, runner, seconds=0.01)
    assert runner.abandoned_calls == 2
    gate.set()
    event.set()
    await eventually(lambda: runner.abandoned_calls == 0)


async def test_without_a_thread_nothing_runs() -> None:
    threads = PluginThreads("p")
    threads.close()
    with pytest.raises(ThreadsFull, match="its threads have ended"):
        await run(in_a_thread, PluginRunner("p", threads))


async def test_the_loop_survives_a_task_that_wants_to_exit() -> None:
    async def function() -> None:
        raise SystemExit(1)

    task = asyncio.create_task(contained(function, LoopTime("p", "list_topics")))
    await asyncio.wait([task])
    with pytest.raises(RaisedByPlugin) as raised:
        result_of(task)
    assert isinstance(raised.value.error, SystemExit)
