"""Places for the requests of the HTTP API that are under way.

Each connection has one request at a time. There are fewer places than connections, so that health and metrics are
answered however many requests of the API run. No asker has more than half of the places: while half of them are free,
every asker gets one, then only askers with few.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from broker_core.access import Asker
from broker_core.errors import Cause, ListingFailed, TooManyRequests
from broker_core.servers.admission import RequestSlots

__all__ = ["ApiAdmission"]


class ApiAdmission:
    """``limit`` places in all (0: any number). For one event loop.

    ``streams`` are the places of answers that have no end (``text/event-stream``), a quarter of them. ``draining`` is
    set once the server stops: such answers end then.
    """

    def __init__(self, limit: int = 0) -> None:
        self._slots = RequestSlots(limit)
        self._limit = limit
        self._of: Counter[str] = Counter()
        self.streams = RequestSlots(max(1, limit // 4) if limit else 0)
        self.draining = asyncio.Event()

    @property
    def taken(self) -> int:
        """The number of requests under way."""
        return self._slots.taken

    @property
    def most_waiting(self) -> int | None:
        """The number of requests of one quota's bucket that may keep connections waiting (``None``: any number)."""
        return max(1, self._limit // 8) if self._limit else None

    @contextmanager
    def place(self, asker: Asker) -> Iterator[None]:
        """A place for one request of this asker.

        Raises :exc:`~broker_core.errors.TooManyRequests`, or :exc:`~broker_core.errors.ListingFailed` with the cause
        ``UNAVAILABLE`` if the server stops.
        """
        if self.draining.is_set():
            raise ListingFailed("This server is stopping", cause=Cause.UNAVAILABLE)
        who = asker.role or asker.host
        if self._has_its_share(who) or not self._slots.take():
            raise TooManyRequests("Too many requests are under way", reason="lookups", cause=Cause.QUEUE)
        self._of[who] += 1
        try:
            yield
        finally:
            self._slots.give_back()
            self._of[who] -= 1
            if not self._of[who]:
                del self._of[who]

    def _has_its_share(self, who: str) -> bool:
        """Whether somebody has to leave the rest to others."""
        limit = self._limit
        return 0 < limit <= 2 * self._slots.taken and self._of[who] >= max(1, limit // 8)
