"""Limits on connections, in all and per address, and on concurrent requests; idle connections make room."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterator, MutableMapping
from contextlib import AbstractContextManager, contextmanager
from itertools import islice
from typing import Final

from broker_core.access import Asker, same_address
from broker_core.errors import Cause, ListingFailed, TooManyRequests

__all__ = ["ApiAdmission", "ConnectionLimits", "ConnectionPlace", "RequestSlots"]

#: Seconds without a request after which a connection gives way. With fewer, clients that all ask would close each
#: other's connections between two requests.
_IDLE: Final = 10.0
#: Connections that are looked at for one that needs a place.
_LOOKS: Final = 256


def _is_busy() -> None:
    return None


class ConnectionPlace:
    """The place of one connection, until it is given back.

    ``idle`` gives the seconds for which nothing has been under way on the connection, ``None`` if something is; ``end``
    closes it. The part that has the connection sets both.
    """

    __slots__ = ("_limits", "address", "end", "idle")

    def __init__(self, limits: ConnectionLimits, address: str) -> None:
        self._limits = limits
        self.address = address
        self.idle: Callable[[], float | None] = _is_busy
        self.end: Callable[[], object] = _is_busy

    def used(self) -> None:
        """Note a request: others give way before."""
        self._limits.used(self)

    def give_back(self) -> None:
        """Give the place back at the end of the connection; once is enough."""
        self._limits.give_back(self)


class ConnectionLimits:
    """Places for connections: ``limit`` in all (``None``: any number), ``per_address`` from one address (0: any).

    Either may be changed at any time: a connection above it stays. If all places are taken, a connection that has been
    idle for ``idle`` seconds is closed for another. ``full`` is the label of the metrics for a lack of places in all.
    """

    def __init__(
        self,
        limit: int | None = None,
        per_address: int = 0,
        *,
        idle: float = _IDLE,
        full: str = "connections",
    ) -> None:
        self.limit = limit
        self.per_address = per_address
        self._idle = idle
        self._full = full
        #: The one used last is at the end, as far as is known.
        self._places: OrderedDict[ConnectionPlace, None] = OrderedDict()
        self._by_address: dict[str, dict[ConnectionPlace, None]] = {}

    @property
    def taken(self) -> int:
        """The number of connections that have a place."""
        return len(self._places)

    def take(self, host: str) -> ConnectionPlace | str:
        """A place for a connection from ``host``; without one, the bound that was reached."""
        address = same_address(host)
        of_address = self._by_address.get(address, {})
        if self.per_address and not self._has_room(of_address, self.per_address):
            return "address"
        if self.limit is not None and not self._has_room(self._places, self.limit):
            return self._full
        place = ConnectionPlace(self, address)
        self._places[place] = None
        self._by_address.setdefault(address, {})[place] = None
        return place

    def used(self, place: ConnectionPlace) -> None:
        """Note that a place was used last: idle ones before it make room first."""
        for places in (self._places, self._by_address.get(place.address, {})):
            if place in places:
                _put_last(places, place)

    def give_back(self, place: ConnectionPlace) -> None:
        """Forget a place; once is enough."""
        if place in self._places:
            del self._places[place]
            of_address = self._by_address[place.address]
            del of_address[place]
            if not of_address:
                del self._by_address[place.address]

    def _has_room(self, places: MutableMapping[ConnectionPlace, None], limit: int) -> bool:
        """Whether there are fewer places than this, after an idle connection was closed if need be."""
        if len(places) != limit:
            return len(places) < limit
        for place in list(islice(places, _LOOKS)):
            idle = place.idle()
            if idle is not None and idle >= self._idle:
                self.give_back(place)  # it hears of its end later
                place.end()
                return True
            _put_last(places, place)  # others are looked at the next time
        return False


def _put_last(places: MutableMapping[ConnectionPlace, None], place: ConnectionPlace) -> None:
    del places[place]
    places[place] = None


class RequestSlots:
    """Places for requests under way (``maxConcurrentLookupRequest``); a ``limit`` of 0 or less is none."""

    __slots__ = ("limit", "taken")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.taken = 0

    @property
    def are_taken(self) -> bool:
        return 0 < self.limit <= self.taken

    def take(self) -> bool:
        if self.are_taken:
            return False
        self.taken += 1
        return True

    def give_back(self) -> None:
        self.taken -= 1


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
    def place(self, key: Hashable) -> Iterator[None]:
        """A place of somebody. Raises :exc:`~broker_core.errors.TooManyRequests`."""
        slots = self.slots
        has_its_share = 0 < slots.limit <= 2 * slots.taken and self._of[key] >= self.share
        if has_its_share or not slots.take():
            raise TooManyRequests(self._refusal, reason="lookups", cause=Cause.QUEUE)
        self._of[key] += 1
        try:
            yield
        finally:
            slots.give_back()
            self._of[key] -= 1
            if not self._of[key]:
                del self._of[key]


class ApiAdmission:
    """Places for the requests of the HTTP API under way, and for streams, whose answers have no end.

    Each connection has one request at a time. There are ``limit`` places in all (0: any number), fewer than
    connections, so that health and metrics are answered however many requests of the API run; and a quarter as many for
    streams. No asker has more than half of the places: while half of them are free, every asker gets one, then only
    askers with few. For one event loop.
    """

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
