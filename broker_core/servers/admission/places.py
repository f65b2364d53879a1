"""Places of connections and of requests: which of them get one, and which connection gives its own up."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, MutableMapping
from itertools import islice
from typing import Final

from broker_core.access import same_address

__all__ = ["ConnectionLimits", "ConnectionPlace", "RequestSlots"]

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
        """The connection is over; once is enough."""
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
        """A place for a connection from ``host``; else which bound there is in the way."""
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
        """Put a place behind the others."""
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
