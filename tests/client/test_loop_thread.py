"""A loop in a thread: results, errors, interrupts and the end."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from broker_core.client import ConnectionLost
from broker_core.client.loop_thread import LoopThread


async def nothing() -> None:
    pass


@pytest.fixture
def thread() -> Iterator[LoopThread]:
    made = LoopThread("Blocking", "NonBlocking")
    yield made
    made.close(nothing)
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
        thread.close(nothing)


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


def test_the_end() -> None:
    thread = LoopThread("Blocking", "NonBlocking")
    thread.run(nothing)
    ended: list[str] = []

    async def last() -> None:
        ended.append(threading.current_thread().name)

    thread.close(last)
    thread.close(last)
    assert ended == ["Blocking"]
    with pytest.raises(ConnectionLost, match="is closed"):
        thread.run(nothing)


def test_the_end_without_a_beginning() -> None:
    thread = LoopThread("Blocking", "NonBlocking")
    thread.close(nothing)
    with pytest.raises(ConnectionLost, match="is closed"):
        thread.run(nothing)


def test_what_fails_at_the_end_ends_the_thread_too() -> None:
    thread = LoopThread("Blocking", "NonBlocking")
    thread.run(nothing)

    async def last() -> None:
        raise KeyError("last")

    with pytest.raises(KeyError, match="last"):
        thread.close(last)
    thread.close(last)
    assert "Blocking" not in {each.name for each in threading.enumerate()}
