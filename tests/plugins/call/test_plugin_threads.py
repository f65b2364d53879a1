"""A plugin's threads: few, its own, and no obstacle to the end of the process."""

from __future__ import annotations

import asyncio
import contextvars
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial

import pytest

from broker_core.plugins.call.plugin_threads import PluginThreads, RaisedByPlugin, ThreadsFull
from tests.support.eventually import eventually


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """What the calls of a test wait for; opened at its end in any case."""
    event = threading.Event()
    yield event
    event.set()


async def test_a_call_runs_in_a_daemon_thread_of_the_plugin() -> None:
    threads = PluginThreads("acme")
    seen = await threads.submit(threading.current_thread)
    assert seen.daemon
    assert seen.name == "plugin-acme-1"
    assert threads.busy == 0
    assert await threads.submit(threading.current_thread) is seen  # it is used again
    threads.close()


async def test_context_variables_come_along() -> None:
    variable = contextvars.ContextVar("variable", default="unset")
    variable.set("here")
    threads = PluginThreads("acme")
    assert await threads.submit(variable.get) == "here"
    threads.close()


@pytest.mark.parametrize("error", [ValueError("x"), StopIteration(3), SystemExit(1), KeyboardInterrupt()])
async def test_what_a_call_raises_comes_back(error: BaseException) -> None:
    def work() -> None:
        raise error

    threads = PluginThreads("acme")
    with pytest.raises(RaisedByPlugin) as caught:
        await threads.submit(work)
    assert caught.value.error is error
    assert await threads.submit(lambda: 7) == 7
    threads.close()


async def test_calls_beyond_the_threads_wait(gate: threading.Event) -> None:
    threads = PluginThreads("acme", size=2)
    first = [threads.submit(gate.wait) for _ in range(2)]
    later = [threads.submit(partial(int, number)) for number in range(5)]
    assert (threads.busy, threads.waiting) == (2, 5)
    gate.set()
    assert await asyncio.gather(*first, *later) == [True, True, 0, 1, 2, 3, 4]
    assert (threads.busy, threads.waiting) == (0, 0)
    threads.close()


async def test_a_full_queue_is_a_failure(gate: threading.Event) -> None:
    threads = PluginThreads("acme", size=1, queue=1)
    running, waiting = threads.submit(gate.wait), threads.submit(lambda: 1)
    with pytest.raises(ThreadsFull, match="1 of 1 thread taken, and 1 call waiting"):
        threads.submit(lambda: 2)
    gate.set()
    assert list(await asyncio.gather(running, waiting)) == [True, 1]
    threads.close()


async def test_threads_that_hang_in_abandoned_calls_make_it_full_at_once(gate: threading.Event) -> None:
    threads = PluginThreads("acme", size=2)
    hanging = [threads.submit(gate.wait) for _ in range(2)]
    waiting = threads.submit(lambda: 1)
    for call in hanging:
        call.cancel()
    with pytest.raises(ThreadsFull, match="2 of 2 threads hanging"):
        await waiting
    assert (threads.abandoned, threads.waiting) == (2, 0)
    with pytest.raises(ThreadsFull, match="2 of 2 threads hanging"):
        threads.submit(lambda: 2)
    gate.set()
    await eventually(lambda: threads.abandoned == 0)
    assert await threads.submit(lambda: 3) == 3
    threads.close()


async def test_a_waiting_call_that_is_given_up_never_runs(gate: threading.Event) -> None:
    threads = PluginThreads("acme", size=1)
    ran: list[int] = []
    running = threads.submit(gate.wait)
    dropped, kept = threads.submit(lambda: ran.append(1)), threads.submit(lambda: ran.append(2))
    dropped.cancel()
    gate.set()
    await asyncio.gather(running, kept)
    assert ran == [2]
    threads.close()


async def test_a_coroutine_that_comes_too_late_is_closed(gate: threading.Event) -> None:
    async def answer() -> int:
        return 1

    def slow() -> object:
        gate.wait()
        return answer()

    threads = PluginThreads("acme", size=1)
    threads.submit(slow).cancel()
    await asyncio.sleep(0)
    gate.set()
    await eventually(lambda: threads.abandoned == 0)  # and no warning that it was never awaited
    threads.close()


async def test_after_the_end_nothing_runs(gate: threading.Event) -> None:
    threads = PluginThreads("acme", size=1)
    running, waiting = threads.submit(gate.wait), threads.submit(lambda: 1)
    threads.close()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    with pytest.raises(ThreadsFull, match="have ended"):
        threads.submit(lambda: 1)
    gate.set()
    assert await running is True


def test_a_hanging_call_does_not_delay_the_exit() -> None:
    code = """
import asyncio, threading
from broker_core.plugins.call.plugin_threads import PluginThreads

async def main():
    call = PluginThreads("acme").submit(threading.Event().wait)
    await asyncio.wait([call], timeout=0.05)
    call.cancel()

asyncio.run(main())
print("done")
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False
    )
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


async def test_nothing_of_what_is_raised_or_left_is_called_on_the_loop() -> None:
    class Broken(Exception):
        def __repr__(self) -> str:
            raise RuntimeError

    def fails() -> None:
        raise Broken

    threads = PluginThreads("p")
    with pytest.raises(RaisedByPlugin) as caught:
        await threads.submit(fails)
    assert isinstance(caught.value.error, Broken)

    started, gate = threading.Event(), threading.Event()

    async def stubborn() -> None:
        try:
            await asyncio.sleep(0)
        finally:
            raise RuntimeError("will not be closed")

    def late() -> object:
        coroutine = stubborn()
        coroutine.send(None)
        started.set()
        gate.wait(30)
        return coroutine

    future = threads.submit(late)
    await eventually(started.is_set)
    future.cancel()
    gate.set()
    await eventually(lambda: threads.busy == 0)
    assert threads.abandoned == 0
