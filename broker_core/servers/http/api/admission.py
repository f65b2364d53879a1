"""Places for the requests of the HTTP API that are under way, and for streams, whose answers have no end.

Each connection has one request at a time. There are fewer places than connections, so that health and metrics are
answered however many requests of the API run. No asker has more than half of the places: while half of them are free,
every asker gets one, then only askers with few.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from contextlib import AbstractContextManager, contextmanager

from broker_core.access import Asker
from broker_core.errors import Cause, ListingFailed, TooManyRequests
from broker_core.servers.admission import RequestSlots

__all__ = ["ApiAdmission"]


class _SharedPlaces:
    """``limit`` places (0: any number). Once half of them are taken, nobody gets more than an eighth."""

    def __init__(self, limit: int, refusal: str) -> None:
        self.slots = RequestSlots(limit)
        self._refusal = refusal
        self._of: Counter[Hashable] = Counter()

    @property
    def share(self) -> int:
        """The eighth of the places, and one at least."""
        return max(1, self.slots.limit // 8)

    @contextmanager
    def place(self, who: Hashable) -> Iterator[None]:
        """A place of somebody. Raises :exc:`~broker_core.errors.TooManyRequests`."""
        slots = self.slots
        has_its_share = 0 < slots.limit <= 2 * slots.taken and self._of[who] >= self.share
        if has_its_share or not slots.take():
            raise TooManyRequests(self._refusal, reason="lookups", cause=Cause.QUEUE)
        self._of[who] += 1
        try:
            yield
        finally:
            slots.give_back()
            self._of[who] -= 1
            if not self._of[who]:
                del self._of[who]


class ApiAdmission:
    """``limit`` places in all (0: any number), and a quarter as many for streams. For one event loop."""

    def __init__(self, limit: int = 0) -> None:
        self._requests = _SharedPlaces(limit, "Too many requests are under way")
        self._streams = _SharedPlaces(
            max(1, limit // 4) if limit else 0, "Too many streams of topics are open"
        )
        #: Whether the server stops: no more requests are taken.
        self.draining = False
        self._on_drain: dict[Callable[[], None], None] = {}

    @property
    def taken(self) -> int:
        """The number of requests under way."""
        return self._requests.slots.taken

    @property
    def streams(self) -> int:
        """The number of open streams."""
        return self._streams.slots.taken

    @property
    def most_waiting(self) -> int | None:
        """The number of requests of one quota's bucket that may keep connections waiting (``None``: any number)."""
        return self._requests.share if self._requests.slots.limit else None

    def drain(self) -> None:
        """Take no more requests, and end those that would wait for something to happen."""
        self.draining = True
        for end in list(self._on_drain):
            end()

    @contextmanager
    def ended_by(self, end: Callable[[], None]) -> Iterator[None]:
        """Call ``end`` if the server stops within the block, or now if it stops already."""
        self._on_drain[end] = None
        if self.draining:
            end()
        try:
            yield
        finally:
            del self._on_drain[end]

    def place(self, asker: Asker) -> AbstractContextManager[None]:
        """A place for one request of this asker.

        Raises :exc:`~broker_core.errors.TooManyRequests`, or :exc:`~broker_core.errors.ListingFailed` with the cause
        ``UNAVAILABLE`` if the server stops.
        """
        if self.draining:
            raise ListingFailed("This server is stopping", cause=Cause.UNAVAILABLE)
        return self._requests.place(asker.role or asker.host)

    @contextmanager
    def stream(self, client: Hashable, close: Callable[[], None]) -> Iterator[None]:
        """A place for one stream of a client, which ``close`` ends if the server stops.

        Raises :exc:`~broker_core.errors.TooManyRequests`.
        """
        with self._streams.place(client), self.ended_by(close):
            yield
