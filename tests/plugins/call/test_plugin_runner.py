"""Running one function of a plugin: its result, or one of three errors."""

from __future__ import annotations

import asyncio
import threading

import pytest

from broker_core.plugins.call.event_loop_time import LoopTime
from broker_core.plugins.call.plugin_runner import Deadline, NotInTime, PluginRunner, contained, result_of
from broker_core.plugins.call.plugin_threads import RaisedByPlugin
from tests.support.eventually import eventually
from tests.support.plugins import PluginOf, loaded


async def test_work_beyond_its_deadline_is_left_and_counted() -> None:
    gate, event = threading.Event(), asyncio.Event()

    async def stays() -> None:
        while not event.is_set():
            try:
                await event.wait()
            except asyncio.CancelledError:
                pass

    runner, loop = PluginRunner("p"), asyncio.get_running_loop()
    try:
        for function in (lambda: gate.wait(30), stays):
            hook = loaded(PluginOf(startup=function)).implementations["broker_core_startup"]
            with pytest.raises(NotInTime):
                await runner.run(hook, {}, Deadline(loop, 0.01), LoopTime("p", "startup"))
        assert runner.abandoned_calls == 2
    finally:  # else a failure is a run that hangs: neither ends of itself
        gate.set()
        event.set()
    await eventually(lambda: runner.abandoned_calls == 0)
    await runner.close()


async def test_the_loop_survives_a_task_that_wants_to_exit() -> None:
    async def function() -> None:
        raise SystemExit(1)

    task = asyncio.create_task(contained(function, LoopTime("p", "list_topics")))
    await asyncio.wait([task])
    with pytest.raises(RaisedByPlugin) as raised:
        result_of(task)
    assert isinstance(raised.value.error, SystemExit)
