"""Work that is done once for all that wait for it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

__all__ = ["SharedTasks"]

_Result = TypeVar("_Result")


class SharedTasks(Generic[_Result]):
    """Works under way by key, at most so many ``at_once``, for one event loop."""

    def __init__(self, at_once: int = 64) -> None:
        self._under_way: dict[Hashable, asyncio.Task[_Result]] = {}
        self._places = asyncio.Semaphore(at_once)

    async def result(self, key: Hashable, work: Callable[[], Awaitable[_Result]]) -> _Result:
        """The result of the work that is under way for a key, else of ``work``. Raises its error."""
        task = self._under_way.get(key)
        if task is None or task.done():  # one that was cancelled before it began
            task = self._under_way[key] = asyncio.get_running_loop().create_task(self._done(key, work))
            # Marks an error as seen: perhaps nobody waits any more.
            task.add_done_callback(lambda task: task.cancelled() or task.exception())
        return await asyncio.shield(task)  # the others wait on if this one goes away

    async def _done(self, key: Hashable, work: Callable[[], Awaitable[_Result]]) -> _Result:
        try:
            async with self._places:
                return await work()
        finally:
            del self._under_way[key]

    def close(self) -> None:
        """Cancel all that is under way."""
        for task in self._under_way.values():
            task.cancel()
