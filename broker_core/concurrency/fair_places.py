"""A bounded number of places, for which keys take turns: a key with many requests only delays itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from broker_core.concurrency.turn_queue import TurnQueue

__all__ = ["FairPlaces"]


class _Waiting:
    __slots__ = ("key", "ready", "turn")

    def __init__(self, key: str, ready: asyncio.Future[None]) -> None:
        self.key = key
        self.turn = (0, 0)
        self.ready = ready


class FairPlaces:
    """Places for ``limit`` callers at once, in fair turns; for one event loop. ``changed`` is called when a caller
    begins to wait or leaves a place.
    """

    __slots__ = ("_changed", "_limit", "_queue", "taken")

    def __init__(self, limit: int, changed: Callable[[], None] = lambda: None) -> None:
        self._limit = limit
        self._changed = changed
        self._queue: TurnQueue[_Waiting] = TurnQueue()
        self.taken = 0

    @property
    def waiting(self) -> int:
        return len(self._queue)

    def next_keys(self) -> list[str]:
        """The keys that will have the next places, as many as there are places."""
        return [each.key for each in self._queue.first(self._limit)]

    @asynccontextmanager
    async def place(self, key: str) -> AsyncIterator[None]:
        """Hold a place; the first waiter of each key comes before the second one of any."""
        if self.taken < self._limit and not self._queue:
            self.taken += 1
        else:
            await self._turn(_Waiting(key, asyncio.get_running_loop().create_future()))
        try:
            yield
        finally:
            self._give_back()

    async def _turn(self, waiting: _Waiting) -> None:
        self._queue.put(waiting)
        self._changed()
        try:
            await waiting.ready
        except BaseException:
            if not self._queue.remove(waiting) and not waiting.ready.cancelled():  # it has a place already
                self._give_back()
            raise

    def _give_back(self) -> None:
        self.taken -= 1
        while self._queue and self.taken < self._limit:
            waiting = self._queue.head
            self._queue.take(waiting)
            if not waiting.ready.done():  # else it is gone
                self.taken += 1
                waiting.ready.set_result(None)
        self._changed()
