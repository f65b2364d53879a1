"""An event loop in a thread of its own, for programs without one."""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import threading
import warnings
import weakref
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from functools import partial, wraps
from types import TracebackType
from typing import Any, Concatenate, Final, Generic, ParamSpec, Self, TypeVar

from broker_core.client.client_errors import ConnectionLost
from broker_core.client.loop_bound import LoopBound

__all__ = ["BlockingClient", "LoopThread", "blocking"]

P = ParamSpec("P")
T = TypeVar("T")
C = TypeVar("C", bound=LoopBound)

_EXIT_SECONDS: Final = 5.0  # that the program's end waits for the last work of all threads together


class LoopThread:
    """Runs coroutines for any number of threads. The thread starts with the first of them, and ends with
    :meth:`close`. Without that call the last work is done, with a :exc:`ResourceWarning`, when nothing refers to the
        object any more, and at the end of the program.
    """

    def __init__(self, name: str, instead: str, last: Callable[[], Awaitable[None]]) -> None:
        """``name`` is the name of the thread; ``instead`` names what to use in a running event loop; ``last`` is the
        last work in the thread, and must not refer to this object.
        """
        self._name: Final = name
        self._instead: Final = instead
        self._last: Final = last
        self._lock: Final = threading.Lock()
        self._running: _RunningLoop | None = None
        self._is_closed = False

    def run(self, work: Callable[[], Awaitable[T]]) -> T:
        """The result of ``work``, which is called in the loop's thread. An interrupt (Ctrl-C) cancels it.

        Raises its errors, :exc:`RuntimeError` inside a running event loop, which it would block, and
        :exc:`~broker_core.client.ConnectionLost` after :meth:`close`.
        """
        self._refuse_loops()

        task: asyncio.Task[T] | None = None
        given_up = False  # an interrupt may come before this thread knows of the future

        async def running() -> T:
            nonlocal task
            task = asyncio.current_task()
            if given_up:
                raise asyncio.CancelledError
            return await work()

        def give_up() -> None:
            nonlocal given_up
            given_up = True
            if task is not None:
                task.cancel()  # no effect if it has ended

        loop: asyncio.AbstractEventLoop | None = None
        try:
            with self._lock:  # the last work of the thread comes after this
                if self._is_closed:
                    raise ConnectionLost(f"{self._name} is closed")
                loop = self._started().loop
                future = asyncio.run_coroutine_threadsafe(running(), loop)
            return future.result()
        except BaseException:
            if loop is not None:
                with suppress(RuntimeError):  # the loop is closed
                    loop.call_soon_threadsafe(give_up)
            raise

    def close(self) -> None:
        """Do the last work, and end the thread. Closing again waits for the end."""
        self._refuse_loops()
        with self._lock:
            is_first, self._is_closed = not self._is_closed, True
            running = self._running
        if running is None:
            return
        if is_first and running.thread.is_alive():  # it is not in a process that was forked
            running.ending().result()
        running.thread.join()

    def _refuse_loops(self) -> None:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return
        raise RuntimeError(
            f"{self._name} would block the event loop that runs in this thread: use {self._instead}, and await it"
        )

    def _started(self) -> _RunningLoop:
        """The loop, started now if it does not run."""
        if self._running is None:
            self._running = _RunningLoop(self._name, self._last)
            weakref.finalize(self, self._running.dropped).atexit = False
        elif not self._running.thread.is_alive():
            raise ConnectionLost(
                f"{self._name} does not go on in a process that was forked: make another one there"
            )
        return self._running


class BlockingClient(Generic[C]):
    """A client without ``await``: runs the methods of another one in a thread with its loop (:func:`blocking`).

    One client serves any number of threads; :meth:`close` or ``with`` ends its own one. Ctrl-C interrupts a call.
    Inside a running event loop a call raises :exc:`RuntimeError`.
    """

    def __init__(self, client: C) -> None:
        self._client: Final = client
        self._thread: Final = LoopThread(type(self).__name__, type(client).__name__, client.close)

    def close(self) -> None:
        """Close all connections and end the thread; requests of other threads fail. Closing again does nothing."""
        self._thread.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _run(self, work: Callable[[], Awaitable[T]]) -> T:
        """The result of ``work``, called in the thread."""
        return self._thread.run(work)


def blocking(
    method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Any, P], T]:
    """The method of a :class:`BlockingClient` that has the arguments and the result of its client's ``method``."""

    @wraps(method)
    def run(self: BlockingClient[Any], /, *given: P.args, **named: P.kwargs) -> T:
        ask: Callable[P, Coroutine[Any, Any, T]] = getattr(self._client, method.__name__)
        return self._run(partial(ask, *given, **named))

    return run


class _RunningLoop:
    """The thread and its loop. It does not refer to the :class:`LoopThread`, which may be dropped."""

    def __init__(self, name: str, last: Callable[[], Awaitable[None]]) -> None:
        """Start it, and wait until the loop runs."""
        self.loop: asyncio.AbstractEventLoop
        self._end: asyncio.Event
        self._last: Final = last
        self._ending: concurrent.futures.Future[None] | None = None
        began = threading.Event()
        self.thread: Final = threading.Thread(
            target=lambda: asyncio.run(self._serve(began)), name=name, daemon=True
        )
        self.thread.start()
        began.wait()

    def ending(self, *, with_the_program: bool = False) -> concurrent.futures.Future[None]:
        """Do the last work, once, and end the thread; at the end of the program, when no thread can be started any more
        to clean up after it, the thread stays.
        """
        if self._ending is None:
            last = self._end_it(stays=with_the_program)
            self._ending = asyncio.run_coroutine_threadsafe(last, self.loop)
        return self._ending

    def dropped(self) -> None:
        """End the thread, which nobody can close any more. It waits for nothing: the garbage collector calls it in any
        thread.
        """
        if self.thread.is_alive() and self._ending is None:
            self.ending()
            warnings.warn(f"a {self.thread.name} was not closed", ResourceWarning, stacklevel=2)

    async def _serve(self, began: threading.Event) -> None:
        self.loop, self._end = asyncio.get_running_loop(), asyncio.Event()
        _running_loops.add(self)
        began.set()
        try:
            await self._end.wait()
        finally:
            _running_loops.discard(self)

    async def _end_it(self, *, stays: bool) -> None:
        try:
            await self._last()
        finally:
            if not stays:
                self._end.set()


_running_loops: Final[set[_RunningLoop]] = set()


# Not in `threading._register_atexit`, which comes before other threads of the program have ended: they may still ask.
@atexit.register
def _end_with_the_program() -> None:
    """Do the last work of all loops: a thread of the official client that calls Python when the interpreter is gone
    aborts the process.
    """
    loops = [loop for loop in _running_loops.copy() if loop.thread.is_alive()]
    endings = [loop.ending(with_the_program=True) for loop in loops]
    concurrent.futures.wait(endings, timeout=_EXIT_SECONDS)
