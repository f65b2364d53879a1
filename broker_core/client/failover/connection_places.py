"""Places for connections to the brokers: a limit in all, and idle connections give way to wanted ones."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

__all__ = ["ConnectionPlaces"]

_SPARE: Final = 4  # one of so many places is kept for first connections of principals


class ConnectionPlaces:
    """At most ``limit`` connections, shared by all pools. ``evictors`` close an idle one, the least recently used
    first, and return whether there was one. Waiting connections get places in turn.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        #: Why a pool waits for a place.
        self.reason = f"all {limit} connections to the brokers are in use by other clients"
        self.taken = 0
        self.evictors: list[Callable[[], bool]] = []
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def waiting(self) -> int:
        """Pools that wait for a place."""
        return len(self._waiting)

    def take_spare(self) -> bool:
        """A place for one more connection of a pool that has one already; only while many are free."""
        if self._waiting or self.taken >= self.limit - self.limit // _SPARE:
            return False
        self.taken += 1
        return True

    async def take(self) -> None:
        """Wait for a place for the first connection of a pool."""
        if not self._waiting:
            if self.taken >= self.limit:
                self._evict()
            if self.taken < self.limit:
                self.taken += 1
                return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                self.give_back()  # it came too late
            elif waiter in self._waiting:
                self._waiting.remove(waiter)
            raise

    def give_back(self) -> None:
        """Give back the place of a connection that is closed, or was not made."""
        self.taken -= 1
        self._hand_on()

    def became_idle(self) -> None:
        """Note that a pool has nothing to do at the moment: its place may be wanted."""
        if self._waiting:
            self._evict()

    def _evict(self) -> None:
        for evict in self.evictors:
            if evict():
                return

    def _hand_on(self) -> None:
        while self._waiting and self.taken < self.limit:
            waiter = self._waiting.popleft()
            if not waiter.done():
                self.taken += 1
                waiter.set_result(None)
