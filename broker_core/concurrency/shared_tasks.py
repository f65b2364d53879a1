"""Tasks by key: concurrent callers of one key await one run, and so many runs are under way at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import partial
from typing import Any, Generic, TypeVar

__all__ = ["TasksByKey"]

T = TypeVar("T")


class TasksByKey(Generic[T]):
    """Work under way by key, each in a task of its own; for one event loop.

    At most so many works run ``at_once``, in the order in which they were asked for; ``None`` is no bound.
    """

    __slots__ = ("_places", "_under_way")

    def __init__(self, at_once: int | None = None) -> None:
        self._under_way: dict[Hashable, asyncio.Task[T]] = {}
        self._places: AbstractAsyncContextManager[None] = (
            nullcontext() if at_once is None else asyncio.Semaphore(at_once)
        )

    async def result(self, key: Hashable, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The result of the work that is under way for a key, else of ``work``. Raises its error, which is one object
        for all that wait. A waiter that is cancelled ends nothing.
        """
        task = self._under_way.get(key)
        if task is None or task.done():
            task = self._under_way[key] = asyncio.get_running_loop().create_task(self._done(work))
            task.add_done_callback(partial(self._ended, key))
        return await asyncio.shield(task)

    async def _done(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        async with self._places:
            return await work()

    def _ended(self, key: Hashable, task: asyncio.Task[T]) -> None:
        if self._under_way.get(key) is task:
            del self._under_way[key]
        if not task.cancelled():
            task.exception()  # perhaps nobody waits for it any more

    async def close(self) -> None:
        """Cancel all work under way, and wait for its end."""
        tasks = list(self._under_way.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
