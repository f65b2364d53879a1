"""Calls that outlive their deadline: kept, counted, and no obstacle to the shutdown."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest
from structlog.testing import capture_logs

from broker_core.plugins.call.plugin_runner import Abandoned
from tests.support.eventually import eventually


async def test_what_ignores_cancellation_is_closed_at_the_end() -> None:
    cleaned = asyncio.Event()

    async def stubborn() -> None:
        try:
            while True:
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    pass
        finally:
            cleaned.set()

    abandoned = Abandoned("p")
    task = asyncio.create_task(stubborn())
    await asyncio.sleep(0)
    abandoned.leave(task)
    await asyncio.sleep(0)
    assert not task.done()
    await abandoned.end()
    assert task.done()
    assert cleaned.is_set()
    assert not len(abandoned)


@pytest.mark.parametrize("caught", ["asyncio.CancelledError", "BaseException"])
def test_no_task_holds_the_process(caught: str) -> None:
    code = f"""
import asyncio
from broker_core.plugins.call.plugin_runner import Abandoned

async def stubborn():
    while True:
        try:
            await asyncio.Event().wait()
        except {caught}:
            pass

async def main():
    abandoned = Abandoned("p")
    task = asyncio.create_task(stubborn())
    await asyncio.sleep(0)
    abandoned.leave(task)
    await abandoned.end()

asyncio.run(main())
print("done", flush=True)
import os
os._exit(0)  # without a loop, the second of these would spin for ever in its own handler
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=False
    )
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "done"), done.stderr


async def test_what_resists_everything_is_logged() -> None:
    end = asyncio.Event()

    async def undead() -> None:
        while not end.is_set():
            try:
                await end.wait()
            except BaseException:  # noqa: BLE001 - the worst that a plugin can do
                pass

    abandoned = Abandoned("p")
    task = asyncio.create_task(undead())
    await asyncio.sleep(0)
    abandoned.leave(task)
    with capture_logs() as logs:
        await abandoned.end()
    assert [entry["event"] for entry in logs] == ["plugin left a task behind that cannot be ended"]
    assert task not in asyncio.all_tasks()
    assert not len(abandoned)
    end.set()
    await eventually(task.done)
