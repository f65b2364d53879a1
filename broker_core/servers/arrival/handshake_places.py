"""The few places of TLS handshakes: addresses take turns, and one that has many makes room for one that has few.

A storm of clients of one address waits for itself: a slow one may be slow because of the others, and is closed later.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from broker_core.concurrency.turn_queue import TurnQueue

__all__ = ["HandshakePlaces"]

#: Seconds that a handshake may take: thousands of clients on one busy machine need most of them.
_LONGEST: Final = 15.0
#: Seconds that it has where an address with fewer places waits for its place: a handshake is two round trips.
_PATIENCE: Final = 3.0
#: The same where any other address, or its own, has somebody who waits.
_MOST_PATIENCE: Final = 6.0
#: Seconds until that is looked at again.
_AGAIN: Final = 0.1


class _Waiting:
    __slots__ = ("key", "ready", "turn")

    def __init__(self, key: str, ready: asyncio.Future[None]) -> None:
        self.key = key
        self.turn = (0, 0)
        self.ready = ready


class HandshakePlaces:
    """``limit`` places; for one event loop."""

    __slots__ = ("_limit", "_queue", "_timer", "_under_way", "taken")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.taken = 0
        #: The time limits of the handshakes under way, with their address and their beginning; the oldest is first.
        self._under_way: dict[asyncio.Timeout, tuple[str, float]] = {}
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
                self._under_way[limit] = host, loop.time()
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
        """Where others wait, end old handshakes when they have had their time."""
        if self._queue and self._timer is None:
            loop = asyncio.get_running_loop()
            _, since = next(iter(self._under_way.values()), ("", loop.time()))
            self._timer = loop.call_at(since + _PATIENCE, self._make_room)

    def _make_room(self) -> None:
        self._timer = None
        if not self._queue:
            return
        loop = asyncio.get_running_loop()
        now = loop.time()
        # Those that are ending now have their place for an instant still.
        staying = {limit: each for limit, each in self._under_way.items() if (limit.when() or 0.0) > now}
        held = Counter(host for host, _ in staying.values())
        waiting = self._queue.first(self._limit)
        few = min(
            held[each.key] for each in waiting
        )  # the places of the address that will have the next ones
        wanted = sum(held[each.key] == few for each in waiting) - (len(self._under_way) - len(staying))
        for limit, (host, since) in staying.items():
            age = now - since
            if age < _PATIENCE or wanted <= 0:
                break
            if held[host] > few or age >= _MOST_PATIENCE:
                limit.reschedule(now)
                held[host] -= 1
                few += 1
                wanted -= 1
        self._timer = loop.call_later(_AGAIN, self._make_room)
