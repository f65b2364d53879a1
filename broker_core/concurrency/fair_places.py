"""A bounded number of places, for which keys take turns: a key with many requests only delays itself."""

from __future__ import annotations

import asyncio
from bisect import bisect_left, insort
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import asynccontextmanager
from operator import attrgetter
from typing import Any, Final, Generic, Protocol, TypeVar

__all__ = ["FairPlaces", "InTurn", "TurnQueue"]


class InTurn(Protocol):
    """A waiting item: keys take turns; ``turn`` is its place, which the queue sets."""

    key: Hashable
    turn: tuple[int, int]


T = TypeVar("T", bound=InTurn)


_TURN: Final[Callable[[Any], tuple[int, int]]] = attrgetter("turn")


class TurnQueue(Generic[T]):
    """Items by rounds, and within a round in the order of their arrival; they may be removed from anywhere.

    ``items`` are to be read, and changed by the methods alone.
    """

    __slots__ = ("_arrived", "_keys", "_round", "items")

    def __init__(self) -> None:
        self.items: list[T] = []
        self._round = 0  # of the last item that was taken from the head
        self._arrived = 0
        self._keys: dict[
            Hashable, list[int]
        ] = {}  # by waiting key: the number of items, and the last one's round

    def put(self, item: T) -> None:
        """Add an item at the end of its round: the one after that of the key's last item, or the next."""
        waits = self._keys.setdefault(item.key, [0, self._round])
        waits[0] += 1
        waits[1] = max(waits[1], self._round) + 1
        self._arrived += 1
        item.turn = (waits[1], self._arrived)
        insort(self.items, item, key=_TURN)

    def take(self, item: T) -> None:
        """Remove the head, whose turn it was."""
        self._round = item.turn[0]
        self.remove(item)

    def remove(self, item: T) -> bool:
        """Remove an item from any place; returns whether it was there."""
        place = bisect_left(self.items, item.turn, key=_TURN)
        if place == len(self.items) or self.items[place] is not item:
            return False
        del self.items[place]
        waits = self._keys[item.key]
        waits[0] -= 1
        if not waits[0]:
            del self._keys[item.key]
        return True


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
        return len(self._queue.items)

    def next_keys(self) -> list[str]:
        """The keys that will have the next places, as many as there are places."""
        return [each.key for each in self._queue.items[: self._limit]]

    @asynccontextmanager
    async def place(self, key: str) -> AsyncIterator[None]:
        """Hold a place; the first waiter of each key comes before the second one of any."""
        if self.taken < self._limit and not self._queue.items:
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
        while self._queue.items and self.taken < self._limit:
            waiting = self._queue.items[0]
            self._queue.take(waiting)
            if not waiting.ready.done():  # else it is gone
                self.taken += 1
                waiting.ready.set_result(None)
        self._changed()
