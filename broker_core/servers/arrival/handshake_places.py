"""Limit on concurrent TLS handshakes, shared fairly between addresses: one with many makes room for one with few.

A storm of clients of one address waits for itself: a slow one may be slow because of the others, and is closed later.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from broker_core.concurrency import FairPlaces

__all__ = ["HandshakePlaces"]

#: Seconds that a handshake may take: thousands of clients on one busy machine need most of them.
_LONGEST: Final = 15.0
#: Seconds that a handshake has if an address with fewer places waits: it takes two round trips.
_PATIENCE: Final = 3.0
#: Seconds that a handshake has if any other client waits, of this address or another.
_MOST_PATIENCE: Final = 6.0
#: Seconds between two looks at the handshakes that have had their time.
_AGAIN: Final = 0.1


class HandshakePlaces:
    """``limit`` places; for one event loop."""

    __slots__ = ("_places", "_timer", "_under_way")

    def __init__(self, limit: int) -> None:
        self._places = FairPlaces(limit, self._see_to_room)
        #: The time limits of the handshakes under way, with their address and their beginning; the oldest is first.
        self._under_way: dict[asyncio.Timeout, tuple[str, float]] = {}
        self._timer: asyncio.TimerHandle | None = None

    @property
    def taken(self) -> int:
        return self._places.taken

    @property
    def waiting(self) -> int:
        return self._places.waiting

    @asynccontextmanager
    async def place(self, host: str) -> AsyncIterator[None]:
        """Hold a place for a client of this address; :exc:`TimeoutError` if it is held too long."""
        async with self._places.place(host), asyncio.timeout(_LONGEST) as limit:
            self._under_way[limit] = host, asyncio.get_running_loop().time()
            try:
                yield
            finally:
                del self._under_way[limit]

    def _see_to_room(self) -> None:
        """End old handshakes that have had their time, if others wait."""
        if self.waiting and self._timer is None:
            loop = asyncio.get_running_loop()
            _, since = next(iter(self._under_way.values()), ("", loop.time()))
            self._timer = loop.call_at(since + _PATIENCE, self._make_room)

    def _make_room(self) -> None:
        self._timer = None
        if not self.waiting:
            return
        loop = asyncio.get_running_loop()
        now = loop.time()
        # Handshakes that end now still have their place for an instant.
        staying = {limit: each for limit, each in self._under_way.items() if (limit.when() or 0.0) > now}
        held = Counter(host for host, _ in staying.values())
        waiting = self._places.next_keys()
        few = min(held[host] for host in waiting)  # the places of the address that will have the next ones
        wanted = sum(held[host] == few for host in waiting) - (len(self._under_way) - len(staying))
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
