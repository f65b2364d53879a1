"""The threads of an event loop for work of the processor that belongs to no single request: few, and in turns.

The loop's default executor is first come, first served, and reads of files wait in it too: many namespaces that change
at once would keep a file's reader waiting for as long as all of them take, and a hundred reads of one namespace the
first one of another. What a request needs alone is done by the threads of the pipeline, in turns of connections.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar
from weakref import WeakKeyDictionary

from broker_core.concurrency.fair_places import FairPlaces

__all__ = ["in_thread"]

T = TypeVar("T")

#: Threads of a loop: most of their work is done without the interpreter's lock.
_THREADS: Final = 4


class _CpuThreads:
    """Threads, and as many places for those that wait for one. They end with the loop that they are for."""

    def __init__(self) -> None:
        self.places = FairPlaces(_THREADS)
        self.pool = ThreadPoolExecutor(_THREADS, "cpu")


_of_loops: WeakKeyDictionary[asyncio.AbstractEventLoop, _CpuThreads] = WeakKeyDictionary()


async def in_thread(key: object, work: Callable[..., T], *arguments: object) -> T:
    """The result of ``work(*arguments)``, called in a thread; the first call of each key comes before any second one.

    ``str(key)`` counts: a namespace, say. Work that has begun is not ended by a cancellation.
    """
    loop = asyncio.get_running_loop()
    threads = _of_loops.get(loop)
    if threads is None:
        threads = _of_loops[loop] = _CpuThreads()
    async with threads.places.place(str(key)):
        return await loop.run_in_executor(threads.pool, work, *arguments)
