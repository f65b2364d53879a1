"""One question of many: who asks while it is asked already gets the answer to the next, which begins after he asked.

So nobody is answered with a state from before his question, and however many ask, one question at a time is under way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, Generic, TypeVar

__all__ = ["SharedAsks"]

T = TypeVar("T")


class SharedAsks(Generic[T]):
    """Questions by key. For one event loop."""

    def __init__(self) -> None:
        self._running: dict[Hashable, asyncio.Task[T]] = {}
        self._next: dict[Hashable, asyncio.Task[T]] = {}

    async def ask(self, key: Hashable, question: Callable[[], Awaitable[T]]) -> T:
        """What ``question()`` gives: this one's, or that of somebody else with the same key that begins from now on."""
        task = self._next.get(key)
        if task is None:
            running = self._running.get(key)
            if running is None:
                task = self._running[key] = self._begin(self._asked(key, question))
            else:
                task = self._next[key] = self._begin(self._after(running, key, question))
        # Shielded: others may wait for it, and who goes away must not end it.
        return await asyncio.shield(task)

    def _begin(self, work: Any) -> asyncio.Task[T]:
        task: asyncio.Task[T] = asyncio.get_running_loop().create_task(work)
        task.add_done_callback(_looked_at)
        return task

    async def _after(
        self, running: asyncio.Task[T], key: Hashable, question: Callable[[], Awaitable[T]]
    ) -> T:
        await asyncio.wait([running])
        task = self._next.pop(key)
        self._running[key] = task
        return await self._asked(key, question)

    async def _asked(self, key: Hashable, question: Callable[[], Awaitable[T]]) -> T:
        try:
            return await question()
        finally:
            del self._running[key]


def _looked_at(task: asyncio.Task[Any]) -> None:
    """An exception that everybody who waited for has gone away from is nobody's."""
    if not task.cancelled():
        task.exception()
