"""A loop in a thread: results, errors, interrupts and the end."""

from __future__ import annotations

import asyncio
import concurrent.futures
import gc
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from broker_core.client import ConnectionLost
from broker_core.client.loop_thread import LoopThread


async def nothing() -> None:
    pass


@pytest.fixture
def thread() -> Iterator[LoopThread]:
    made = LoopThread("Blocking", "NonBlocking", nothing)
    yield made
    made.close()
    assert "Blocking" not in {each.name for each in threading.enumerate()}


def test_results_and_errors(thread: LoopThread) -> None:
    async def double(number: int) -> int:
        await asyncio.sleep(0)
        return 2 * number

    async def fail() -> None:
        raise KeyError("x")

    assert thread.run(lambda: double(2)) == 4
    with pytest.raises(KeyError, match="x"):
        thread.run(fail)
    with pytest.raises(TypeError):
        thread.run(lambda: double("2", 3))  # type: ignore[call-arg, arg-type]


def test_many_threads_use_one(thread: LoopThread) -> None:
    meeting = asyncio.Barrier(20)

    async def meet() -> str:
        await meeting.wait()
        return threading.current_thread().name

    with ThreadPoolExecutor(20) as threads:
        assert set(threads.map(lambda _: thread.run(meet), range(20))) == {"Blocking"}


async def test_it_blocks_no_loop(thread: LoopThread) -> None:
    with pytest.raises(RuntimeError, match="use NonBlocking, and await it"):
        thread.run(nothing)
    with pytest.raises(RuntimeError, match="use NonBlocking"):
        thread.close()


def test_an_interrupt_cancels_what_runs(thread: LoopThread) -> None:
    cancelled = threading.Event()
    main = threading.main_thread().ident
    assert main is not None
    assert threading.current_thread() is threading.main_thread()

    async def for_ever() -> None:
        signal.pthread_kill(main, signal.SIGINT)
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            thread.run(for_ever)
    finally:
        signal.signal(signal.SIGINT, before)
    assert cancelled.wait(60)
    thread.run(nothing)


@pytest.mark.parametrize("started", [False, True])
def test_an_interrupt_before_the_future_is_known_cancels_too(
    thread: LoopThread, monkeypatch: pytest.MonkeyPatch, started: bool
) -> None:
    submit = asyncio.run_coroutine_threadsafe
    began, ended = threading.Event(), threading.Event()
    futures = []

    async def for_ever() -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    def interrupted(work: Any, loop: asyncio.AbstractEventLoop) -> None:
        futures.append(submit(work, loop))
        if started:
            assert began.wait(60)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(asyncio, "run_coroutine_threadsafe", interrupted)
        with pytest.raises(KeyboardInterrupt):
            thread.run(for_ever)
    with pytest.raises(concurrent.futures.CancelledError):
        futures[0].result(60)
    assert ended.is_set() == began.is_set()
    thread.run(nothing)


def test_the_end() -> None:
    ended: list[str] = []

    async def last() -> None:
        ended.append(threading.current_thread().name)

    thread = LoopThread("Blocking", "NonBlocking", last)
    thread.run(nothing)

    thread.close()
    thread.close()
    assert ended == ["Blocking"]
    with pytest.raises(ConnectionLost, match="is closed"):
        thread.run(nothing)


def test_the_end_without_a_beginning() -> None:
    thread = LoopThread("Blocking", "NonBlocking", nothing)
    thread.close()
    with pytest.raises(ConnectionLost, match="is closed"):
        thread.run(nothing)


def test_what_fails_at_the_end_ends_the_thread_too() -> None:
    async def last() -> None:
        raise KeyError("last")

    thread = LoopThread("Blocking", "NonBlocking", last)
    thread.run(nothing)

    with pytest.raises(KeyError, match="last"):
        thread.close()
    thread.close()
    assert "Blocking" not in {each.name for each in threading.enumerate()}


def test_what_is_dropped_does_its_last_work_and_says_so() -> None:
    ended = threading.Event()

    async def last() -> None:
        ended.set()

    thread = LoopThread("Dropped", "NonBlocking", last)
    thread.run(nothing)
    (running,) = [each for each in threading.enumerate() if each.name == "Dropped"]
    with pytest.warns(ResourceWarning, match="a Dropped was not closed"):
        del thread
    assert ended.wait(60)
    running.join(60)
    assert not running.is_alive()


def test_the_end_of_the_program_does_the_last_work() -> None:
    """Also for another thread of the program, which goes on after the main thread."""
    program = """
import asyncio, threading
from broker_core.client.loop_thread import LoopThread

async def work():
    print("work", flush=True)

async def last():
    await asyncio.sleep(0)
    print("last", flush=True)

loop = LoopThread("Blocking", "NonBlocking", last)
loop.run(work)

def go_on():
    threading.main_thread().join()
    loop.run(work)

threading.Thread(target=go_on).start()
raise SystemExit(3)
"""
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (3, "work\nwork\nlast\n", "")


def test_a_forked_process_gets_one_error(monkeypatch: pytest.MonkeyPatch) -> None:
    thread = LoopThread("Blocking", "NonBlocking", nothing)
    thread.run(nothing)
    with monkeypatch.context() as forked, warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        forked.setattr(
            thread._running, "thread", threading.Thread()
        )  # only the thread that forks is alive there
        with pytest.raises(ConnectionLost, match="does not go on in a process that was forked"):
            thread.run(nothing)
        gc.collect()
    assert found == [], "a coroutine that was never awaited"
    thread.close()
