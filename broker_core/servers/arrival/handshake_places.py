"""The few places of TLS handshakes: addresses take turns for them, and none is held for long while others wait."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from itertools import islice
from typing import Final

from broker_core.concurrency.turn_queue import TurnQueue

__all__ = ["HandshakePlaces"]

#: Seconds that a handshake may take.
_LONGEST: Final = 10.0
#: Seconds that it has where others wait for its place: a handshake is two round trips.
_PATIENCE: Final = 2.0
#: Seconds until that is looked at again.
_AGAIN: Final = 0.1


class _Waiting:
    __slots__ = ("key", "ready", "turn")

    def __init__(self, key: Hashable, ready: asyncio.Future[None]) -> None:
        self.key = key
        self.turn = (0, 0)
        self.ready = ready


class HandshakePlaces:
    """``limit`` places; for one event loop."""

    __slots__ = ("_limit", "_queue", "_timer", "_under_way", "taken")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.taken = 0
        #: The time limits of the handshakes under way, with the time of their beginning; the oldest is first.
        self._under_way: dict[asyncio.Timeout, float] = {}
        self._queue: TurnQueue[_Waiting] = TurnQueue()
        self._timer: asyncio.TimerHandle | None = None

    @property
    def waiting(self) -> int:
        return len(self._queue)

    @asynccontextmanager
    async def place(self, host: str) -> AsyncIterator[None]:
        """Hold a place for a client of this address; :exc:`TimeoutError` where it is held for too long."""
        loop = asyncio.get_running_loop()
        if self.taken < self._limit and not self._queue:
            self.taken += 1
        else:
            await self._turn(_Waiting(host, loop.create_future()))
        try:
            async with asyncio.timeout(_LONGEST) as limit:
                self._under_way[limit] = loop.time()
                try:
                    yield
                finally:
                    del self._under_way[limit]
        finally:
            self._give_back()

    async def _turn(self, waiting: _Waiting) -> None:
        self._queue.put(waiting)
        self._see_to_room()
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
        self._see_to_room()

    def _see_to_room(self) -> None:
        """Where others wait, end the oldest handshake when it has had its time."""
        if self._queue and self._timer is None:
            loop = asyncio.get_running_loop()
            since = next(iter(self._under_way.values()), loop.time())
            self._timer = loop.call_at(since + _PATIENCE, self._make_room)

    def _make_room(self) -> None:
        self._timer = None
        now = asyncio.get_running_loop().time()
        for limit, since in islice(self._under_way.items(), len(self._queue)):
            if since + _PATIENCE > now:
                break
            if not limit.expired():
                limit.reschedule(now)
        if self._queue:
            self._timer = asyncio.get_running_loop().call_later(_AGAIN, self._make_room)
