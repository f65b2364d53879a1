"""An event loop in a thread of its own, for programs without one."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from broker_core.client.errors import ConnectionLost

__all__ = ["LoopThread"]

T = TypeVar("T")


class LoopThread:
    """Runs coroutines for any number of threads. The thread starts with the first of them, and ends with
    :meth:`close`, or with the program.
    """

    def __init__(self, name: str, instead: str) -> None:
        """``name`` is the name of the thread; ``instead`` what is used where an event loop runs."""
        self._name: Final = name
        self._instead: Final = instead
        self._lock: Final = threading.Lock()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._end: asyncio.Event | None = None
        self._is_closed = False

    def run(self, work: Callable[[], Awaitable[T]]) -> T:
        """The result of ``work``, which is called in the loop's thread. An interrupt (Ctrl-C) cancels it.

        Raises what it raises, :exc:`RuntimeError` inside of a running event loop, which it would block, and
        :exc:`~broker_core.client.ConnectionLost` after :meth:`close`.
        """
        self._refuse_loops()

        async def running() -> T:
            return await work()

        with self._lock:
            if self._is_closed:
                raise ConnectionLost(f"{self._name} is closed")
            future = asyncio.run_coroutine_threadsafe(running(), self._started())
        try:
            return future.result()
        finally:
            future.cancel()  # nothing, where it has ended

    def close(self, last: Callable[[], Awaitable[None]]) -> None:
        """Run ``last``, and end the thread. Closing again waits for the end."""
        self._refuse_loops()
        with self._lock:
            is_first, self._is_closed = not self._is_closed, True
            thread, loop, end = self._thread, self._loop, self._end
        if thread is None or loop is None or end is None:
            return

        async def ending() -> None:
            try:
                await last()
            finally:
                end.set()

        if is_first and thread.is_alive():  # it is not in a process that was forked
            asyncio.run_coroutine_threadsafe(ending(), loop).result()
        thread.join()

    def _refuse_loops(self) -> None:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return
        raise RuntimeError(
            f"{self._name} would block the event loop that runs in this thread: use {self._instead}, and await it"
        )

    def _started(self) -> asyncio.AbstractEventLoop:
        """The loop, which runs from now on at the latest."""
        if self._thread is not None and not self._thread.is_alive():
            raise ConnectionLost(
                f"{self._name} does not go on in a process that was forked: make another one there"
            )
        if self._loop is None:
            began = threading.Event()
            self._thread = threading.Thread(
                target=lambda: asyncio.run(self._serve(began)), name=self._name, daemon=True
            )
            self._thread.start()
            began.wait()
            assert self._loop is not None
        return self._loop

    async def _serve(self, began: threading.Event) -> None:
        self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
        began.set()
        await self._end.wait()
