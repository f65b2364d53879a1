"""The threads of an event loop for work of the processor that belongs to no single request: few, and in turns.

The loop's default executor is first come, first served, and reads of files wait in it too: many namespaces that change
at once would keep a file's reader waiting for as long as all of them take, and a hundred reads of one namespace the
first one of another. What a request needs alone is done by the threads of the pipeline, in turns of connections.

Work in steps is a generator that yields before each further step whether it is quick, and returns the result. An event
loop does a little work of this kind itself, with its sockets served between the steps: handing half a millisecond of
work to a thread takes as long again, and the loop waits for the interpreter's lock (GIL) meanwhile. A thread that holds
this lock for milliseconds again and again releases it in between (:func:`pass_lock_on`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import Final, TypeAlias, TypeVar

from broker_core.concurrency.fair_places import FairPlaces

__all__ = ["Steps", "finished", "in_thread", "in_turns", "pass_lock_on"]


# A waiting thread requests the lock after 5 ms without a release. A thread that releases it for an instant in between,
# as every system call does, takes it back before the other has woken up, and so can keep the event loop waiting for as
# long as it has work. So it must release the lock for longer than waking up takes.
_SECONDS: Final = 1e-4


def pass_lock_on(seconds: float = 0.0) -> None:
    """Release the lock to a waiting thread for the given time, or 0.15 ms. Never on an event loop."""
    time.sleep(max(seconds, _SECONDS))


T = TypeVar("T")

#: Threads of a loop: most of their work is done without the interpreter's lock.
_THREADS: Final = 4


class _CpuThreads:
    """The threads of a loop, and as many places for calls that wait for one."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.places = FairPlaces(_THREADS)
        self.pool = ThreadPoolExecutor(_THREADS, "cpu")
        self.until_end = self._until_end(loop)

    async def _until_end(self, loop: asyncio.AbstractEventLoop) -> AsyncGenerator[None]:
        """An asynchronous generator, since ``asyncio.run`` closes those at the loop's end: then no thread stays."""
        try:
            yield
        finally:
            del _of_loops[loop]
            self.pool.shutdown(wait=False, cancel_futures=True)


_of_loops: Final[dict[asyncio.AbstractEventLoop, _CpuThreads]] = {}


async def in_thread(key: object, work: Callable[..., T], *arguments: object) -> T:
    """The result of ``work(*arguments)``, called in a thread; the first call of each key comes before any second one.

    ``str(key)`` counts: a namespace, say. Work that has begun is not ended by a cancellation. As with
    :func:`asyncio.to_thread`, it has the caller's context: the bound fields of log lines, say.
    """
    loop = asyncio.get_running_loop()
    threads = _of_loops.get(loop)
    if threads is None:
        _end_closed_loops()
        threads = _of_loops[loop] = _CpuThreads(loop)
        await anext(threads.until_end)
    async with threads.places.place(str(key)):
        return await loop.run_in_executor(threads.pool, partial(copy_context().run, work, *arguments))


def _end_closed_loops() -> None:
    """Let threads of loops go that were closed alone, without their generators: a program may do so again and again."""
    for loop in list(_of_loops):
        if loop.is_closed() and (ended := _of_loops.pop(loop, None)) is not None:
            ended.pool.shutdown(wait=False, cancel_futures=True)


Steps: TypeAlias = "Generator[bool, None, T]"
#: Seconds until the next step: a timer that is due runs after the events of sockets by then, but a callback of
#: call_soon, as after `asyncio.sleep(0)`, before them.
_NEXT: Final = 1e-9


def finished(steps: Steps[T]) -> T:
    """The result of all steps; the remaining ones are done here."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            made: T = end.value
            return made


async def in_turns(steps: Steps[T], key: object) -> T:
    """Do all steps on the running event loop, which serves its sockets between two of them.

    From the first step on that is not quick, all are done in a thread, in the turns of ``key``.
    """
    while True:
        try:
            is_quick = next(steps)
        except StopIteration as end:
            made: T = end.value
            return made
        if not is_quick:
            return await in_thread(key, finished, steps)
        await asyncio.sleep(_NEXT)
