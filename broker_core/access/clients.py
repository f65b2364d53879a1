"""The clients that are connected now, whatever their protocol: their identity, their requests and their memory."""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol
from weakref import WeakSet

from broker_core.access.asker import Asker, host_of, is_within, same_address
from broker_core.names import MAX_NAMESPACE, RulePattern

__all__ = ["Client", "ClientFilter", "Clients", "RunningRequest", "note_held"]

#: Seconds over which rates are measured, and for which a namespace counts as asked in.
_MINUTE: Final = 60.0
#: Namespaces that are kept of one client; the ones not asked in for longest go first.
_MOST_NAMESPACES: Final = 64


class _Counted(Protocol):
    """Permits of a request: how many bytes they are now."""

    @property
    def count(self) -> int: ...


class RunningRequest(NamedTuple):
    """A request: its operation, its namespace (empty: none), and its start by the clock of the clients."""

    operation: str
    namespace: str
    since: float


class Client:
    """One open connection; it is the ``connection`` of its :class:`~broker_core.access.asker.Asker`.

    ``end`` closes it, ``buffered`` gives the bytes that it has received or is to send. A client's own version is only
    claimed. For one event loop.
    """

    __slots__ = (
        "__weakref__",
        "_bytes",
        "_clock",
        "_held",
        "_last_bytes",
        "_last_requests",
        "_minute",
        "_namespaces",
        "_requests",
        "address",
        "buffered",
        "client_version",
        "end",
        "last",
        "original_principal",
        "role",
        "since",
        "transport",
        "under_way",
    )

    def __init__(
        self,
        transport: str,
        address: str,
        *,
        end: Callable[[], None] = lambda: None,
        buffered: Callable[[], int] = lambda: 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.transport = transport
        self.address = address
        self.end = end
        self.buffered = buffered
        self._clock = clock
        self.role: str | None = None
        self.original_principal: str | None = None
        self.client_version = ""
        self.since = self._minute = clock()
        #: The request that came last.
        self.last: RunningRequest | None = None
        #: The requests that take time, each by a key of its own.
        self.under_way: dict[object, RunningRequest] = {}
        self._namespaces: dict[str, float] = {}  # the last time of a request in each namespace
        self._held: WeakSet[_Counted] | None = None  # made with the first of them
        self._requests = self._bytes = 0  # of this minute
        self._last_requests = self._last_bytes = 0  # of the minute before

    def identified(self, asker: Asker) -> None:
        """Note the identity of the client from now on."""
        self.role, self.original_principal = asker.role, asker.original_principal
        self.client_version = asker.client_version

    def asks(self, operation: str, namespace: str = "") -> None:
        """Count a request. It is called for each of them, so it is quick."""
        now = self._clock()
        if now - self._minute >= _MINUTE:
            self._next_minute(now)
        self._requests += 1
        if len(namespace) > MAX_NAMESPACE:
            namespace = ""  # the name of none
        self.last = RunningRequest(operation, namespace, now)
        if namespace:
            self._namespaces[namespace] = now
            if len(self._namespaces) > _MOST_NAMESPACES:
                self._forget(now)

    @contextmanager
    def asking(self, operation: str, namespace: str) -> Iterator[None]:
        """Count a request that is under way as long as this lasts."""
        self.asks(operation, namespace)
        key = object()
        assert self.last is not None
        self.under_way[key] = self.last
        try:
            yield
        finally:
            self.answered(key)

    def answered(self, key: object) -> None:
        """Note that a request of :attr:`under_way` has ended, and keep no memory of it: most clients are idle."""
        self.under_way.pop(key, None)
        if not self.under_way:
            self.under_way = {}  # an emptied one keeps its room
        if self._held is not None and not self._held:
            self._held = None

    def sent(self, size: int) -> None:
        """Count bytes of an answer."""
        self._bytes += size

    def holds(self, permits: _Counted) -> None:
        """Note permits of a request of this client; they count until they are released."""
        if self._held is None:
            self._held = WeakSet()
        self._held.add(permits)

    @property
    def memory(self) -> int:
        """Bytes that are held for the client and nobody else: permits of its requests, and buffers."""
        return self.buffered() + sum(each.count for each in self._held or ())

    @property
    def idle(self) -> float:
        """Seconds since its last request came, or since it connected."""
        return self._clock() - (self.since if self.last is None else self.last.since)

    @property
    def age(self) -> float:
        """Seconds since it connected."""
        return self._clock() - self.since

    def rates(self) -> tuple[float, float]:
        """Requests, and bytes of answers, per second of about the last minute."""
        now = self._clock()
        if now - self._minute >= _MINUTE:
            self._next_minute(now)
        share = 1 - (now - self._minute) / _MINUTE
        seconds = min(max(now - self.since, 1.0), _MINUTE)
        requests = self._requests + self._last_requests * share
        return requests / seconds, (self._bytes + self._last_bytes * share) / seconds

    def namespaces(self) -> list[str]:
        """The namespaces of the last minute, and of requests under way, the latest first."""
        now = self._clock()
        recent = [(at, name) for name, at in self._namespaces.items() if now - at <= _MINUTE]
        names = [each.namespace for each in self.under_way.values() if each.namespace]
        return list(dict.fromkeys([*(name for _, name in sorted(recent, reverse=True)), *names]))

    def _next_minute(self, now: float) -> None:
        is_next = now - self._minute < 2 * _MINUTE
        self._last_requests, self._last_bytes = (self._requests, self._bytes) if is_next else (0, 0)
        self._requests = self._bytes = 0
        self._minute = now - (now - self._minute) % _MINUTE

    def _forget(self, now: float) -> None:
        recent = sorted((at, name) for name, at in self._namespaces.items() if now - at <= _MINUTE)
        self._namespaces = {name: at for at, name in recent[-_MOST_NAMESPACES // 2 :]}


def note_held(connection: object, permits: _Counted) -> None:
    """Let permits count as those of a connection, if it is one of a server and not of a test or a program."""
    if isinstance(connection, Client):
        connection.holds(permits)


class Clients:
    """The clients of all servers of one broker, which report connections and their ends."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._clients: dict[Client, None] = {}  # the oldest is first

    def __len__(self) -> int:
        return len(self._clients)

    def __iter__(self) -> Iterator[Client]:
        return iter(list(self._clients))

    def opened(
        self, transport: str, address: str, *, end: Callable[[], None], buffered: Callable[[], int]
    ) -> Client:
        """Note a client that has connected just now."""
        client = Client(transport, address, end=end, buffered=buffered, clock=self._clock)
        self._clients[client] = None
        return client

    def closed(self, client: Client) -> None:
        """Forget a client; once is enough."""
        self._clients.pop(client, None)


@dataclass(frozen=True, slots=True)
class ClientFilter:
    """Filter of connected clients; a client must match each part that is given.

    ``role`` is the connection's or the principal of its proxy, and ``namespace`` one with a request of the last minute;
    in both, ``*`` stands for any text. ``address`` is ``HOST``, ``HOST:PORT`` or a network such as ``192.0.2.0/24``.
    Raises :exc:`ValueError` for a value that can match no client.
    """

    role: str | None = None
    address: str | None = None
    namespace: str | None = None

    def __post_init__(self) -> None:
        if self.role == "":
            raise ValueError("must be a role, such as team-*, not empty")
        if self.address is not None:
            _network(self.address)
        if self.namespace is not None and not {*"/*"} & {*self.namespace}:
            raise ValueError(f"must be TENANT/NAMESPACE, such as acme/*, not {self.namespace[:100]!r}")

    @property
    def is_given(self) -> bool:
        """Whether anything is given."""
        return not (self.role is None and self.address is None and self.namespace is None)

    def __call__(self, client: Client) -> bool:
        return (
            (self.role is None or self._has_role(self.role, client))
            and (self.address is None or _is_at(self.address, client.address))
            and (self.namespace is None or any(map(RulePattern(self.namespace).matches, client.namespaces())))
        )

    def _has_role(self, role: str, client: Client) -> bool:
        pattern = RulePattern(role)
        return any(
            each is not None and pattern.matches(each) for each in (client.role, client.original_principal)
        )


def _network(address: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    try:
        return ipaddress.ip_network(same_address(host_of(address)), strict=False)
    except ValueError:
        raise ValueError(
            f"must be an address such as 192.0.2.7, 192.0.2.7:4711 or 192.0.2.0/24, not {address[:100]!r}"
        ) from None


def _is_at(wanted: str, address: str) -> bool:
    host = host_of(wanted)
    if host != wanted and wanted.rpartition(":")[2] != address.rpartition(":")[2]:
        return False
    return is_within(host_of(address), (_network(wanted),))
