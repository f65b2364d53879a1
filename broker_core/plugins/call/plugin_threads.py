"""The threads of one plugin, in which its synchronous hooks run.

Each plugin has a few threads of its own: a plugin that blocks delays no other. They are daemon threads, so that a hook
that never returns does not delay the exit of the process (``concurrent.futures`` would wait for it). A call whose
caller gave up is abandoned: it keeps its thread until it returns. When abandoned calls have taken all threads, or too
many calls wait for one, the pool is full, and a new call fails at once: waiting would only hide the failure.

All bookkeeping happens on the event loop's thread; a worker takes jobs and reports back, nothing else.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, Final

from broker_core.counted import counted

__all__ = ["QUEUE", "THREADS", "PluginThreads", "ThreadsFull"]

THREADS: Final = 8
#: Calls that may wait for a thread; each waits at most until its deadline.
QUEUE: Final = 1000


class ThreadsFull(Exception):
    """There is no thread for a call, and none will come soon."""


class _Call:
    __slots__ = ("abandoned", "context", "function", "future", "loop", "running")

    def __init__(self, loop: asyncio.AbstractEventLoop, function: Callable[[], object]) -> None:
        self.loop = loop
        self.function = function
        self.context = contextvars.copy_context()
        self.future: asyncio.Future[Any] = loop.create_future()
        self.running = False
        self.abandoned = False


class PluginThreads:
    """At most ``size`` daemon threads, started when they are needed, and ``queue`` calls that wait for one."""

    def __init__(self, name: str, size: int = THREADS, queue: int = QUEUE) -> None:
        self._name = name
        self._size = size
        self._limit = queue
        self._jobs: SimpleQueue[_Call | None] = SimpleQueue()
        self._waiting: OrderedDict[_Call, None] = OrderedDict()
        self._started = 0
        self._closed = False
        self.busy = 0
        self.abandoned = 0  # busy with abandoned calls

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def submit(self, function: Callable[[], object]) -> asyncio.Future[Any]:
        """Run ``function`` in a thread; the future has its result, or its exception as a :class:`RaisedByPlugin`.

        Cancelling the future gives the call up: a waiting call is dropped, a running one is abandoned. Raises
        :exc:`ThreadsFull`.
        """
        if self._closed:
            raise ThreadsFull("its threads have ended")
        if self.abandoned >= self._size:
            raise ThreadsFull(self._all_hang())
        call = _Call(asyncio.get_running_loop(), function)
        if self.busy < self._size:
            self._run(call)
        elif len(self._waiting) < self._limit:
            self._waiting[call] = None
        else:
            raise ThreadsFull(
                f"{self._size} of {counted(self._size, 'thread')} taken, and "
                f"{counted(self._limit, 'call')} waiting for one"
            )
        call.future.add_done_callback(lambda _: self._given_up(call))
        return call.future

    def close(self) -> None:
        """End the idle threads; abandoned ones end when their call returns, or with the process."""
        self._closed = True
        for call in list(self._waiting):
            call.future.cancel()
        for _ in range(self._started):
            self._jobs.put(None)

    def _all_hang(self) -> str:
        return f"{self._size} of {counted(self._size, 'thread')} hanging in calls that were given up"

    def _run(self, call: _Call) -> None:
        self.busy += 1
        call.running = True
        if self.busy > self._started:
            self._started += 1
            name = f"plugin-{self._name}-{self._started}"
            threading.Thread(target=_work, args=(self._jobs, self._ended), name=name, daemon=True).start()
        self._jobs.put(call)

    def _ended(self, call: _Call, result: object, error: BaseException | None) -> None:
        self.busy -= 1
        call.running = False
        if call.abandoned:
            self.abandoned -= 1
            if inspect.iscoroutine(result):
                with suppress(BaseException):  # it is a plugin's, and it may raise what it likes
                    result.close()
        elif not call.future.done():
            if error is None:
                call.future.set_result(result)
            else:
                call.future.set_exception(RaisedByPlugin(error))
        while self._waiting and not self._closed:
            following, _ = self._waiting.popitem(last=False)
            if not following.future.done():
                self._run(following)
                return

    def _given_up(self, call: _Call) -> None:
        self._waiting.pop(call, None)
        if call.running:
            call.abandoned = True
            self.abandoned += 1
            while self._waiting and self.abandoned >= self._size:  # no thread will take the waiting jobs
                waiting, _ = self._waiting.popitem(last=False)
                if not waiting.future.done():
                    waiting.future.set_exception(ThreadsFull(self._all_hang()))


class RaisedByPlugin(Exception):
    """A wrapper of an exception of a plugin for a future, which cannot hold ``StopIteration``, nor ``SystemExit``
    safely, and whose ``repr()`` calls that of its exception.
    """

    def __init__(self, error: BaseException) -> None:
        super().__init__(type(error))  # nothing of the error is called here: its repr() may raise
        self.error = error


def _work(
    jobs: SimpleQueue[_Call | None], ended: Callable[[_Call, object, BaseException | None], None]
) -> None:
    while (call := jobs.get()) is not None:
        result: object = None
        error: BaseException | None = None
        try:
            result = call.context.run(call.function)
        except BaseException as raised:  # noqa: BLE001 - SystemExit of a plugin must not end the thread unreported
            error = raised
        try:
            call.loop.call_soon_threadsafe(ended, call, result, error)
        except RuntimeError:  # the loop is closed: no caller is left
            return
        call = None
        del result, error  # a thread that waits for its next job keeps no answer alive
