"""Connections to the brokers, by principal and by broker: none is shared between two principals."""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, TypeAlias, TypeVar

from broker_core.access import Asker
from broker_core.client import (
    ClientError,
    ConnectionLost,
    HandshakeRefused,
    LookupSession,
    ServiceUrl,
    TlsFailed,
    is_of_identity,
)
from broker_core.client.failover import ConnectionPlaces, ConnectionPool
from broker_core.service_addresses import Address
from broker_core.upstream.pulsar.broker_credentials import Identities, Principal
from broker_core.upstream.pulsar.broker_health import BrokerHealth
from broker_core.upstream.pulsar.connector import Connector
from broker_core.upstream.pulsar.gateway_options import UpstreamOptions

__all__ = ["CLOSED", "UpstreamConnections"]

T = TypeVar("T")

_MOST_POOLS: Final = 4096  # most of them wait for a place

#: Why the connections of a pool were closed, for metrics.
CLOSED: Final = ("lost", "idle", "evicted", "gone")

#: The principal, and the broker of a redirect (``None``: the service URL).
_Key: TypeAlias = tuple[Principal, str | None]

_OWN: Final[_Key] = (None, None)


class UpstreamConnections:
    """The pools of one purpose (lookups or listings): at most ``size`` connections each, another is opened while each
    has ``busy`` or more waiting requests. ``closed`` counts connections by the reason of their end.
    """

    def __init__(
        self,
        options: UpstreamOptions,
        identities: Identities,
        health: BrokerHealth,
        connector: Connector,
        places: ConnectionPlaces,
        *,
        size: int,
        busy: int,
        max_frame: int | None,
    ) -> None:
        self._options = options
        self._identities = identities
        self._health = health
        self._connector = connector
        self._places = places
        self._size = size
        self._busy = busy
        self._max_frame = max_frame
        self._service = ServiceUrl.parse(options.upstream.service_url)
        #: Whether the brokers are asked by TLS.
        self.is_tls: Final = self._service.is_tls
        #: Whether the brokers' answers depend on the client's principal.
        self.forwards: Final = identities.forwards
        #: The least recently used first.
        self._pools: OrderedDict[_Key, ConnectionPool[LookupSession]] = OrderedDict()
        self._stopped = False
        self.closed: Counter[str] = Counter(dict.fromkeys(CLOSED, 0))
        places.evictors.append(self._evict)

    def is_of_client(self, refused: HandshakeRefused) -> bool:
        """Whether the brokers refused the client's identity, not this gateway's."""
        return self._identities.by_client and is_of_identity(refused)

    @property
    def connections(self) -> int:
        """Open connections, of all principals."""
        return sum(pool.connections for pool in self._pools.values())

    def has(self, asker: Asker) -> bool:
        """Whether there is a pool for the asker's principal."""
        return (self._identities.principal_of(asker), None) in self._pools

    @property
    def pools(self) -> int:
        """Principals, and brokers of redirects, that have a pool."""
        return len(self._pools)

    async def stop(self) -> None:
        """Close all connections; requests on them fail, and so do all later ones."""
        self._stopped = True
        if self._evict in self._places.evictors:
            self._places.evictors.remove(self._evict)
        pools = list(self._pools.values())
        self._pools.clear()
        await asyncio.gather(*(pool.stop() for pool in pools))

    async def use(
        self,
        asker: Asker,
        ask: Callable[[LookupSession], Awaitable[T]],
        *,
        address: str | None = None,
    ) -> T:
        """The result of ``ask`` on a connection of the asker's principal: to the service URL, or to the broker at
        ``address`` (a service URL, of a redirect).

        Raises what ``ask`` raises, :exc:`~broker_core.client.ConnectionLost` if there is no connection,
        :exc:`~broker_core.client.HandshakeRefused` if the brokers refuse it, and
        :exc:`~broker_core.client.InvalidServiceUrl` for a wrong address. Credentials are never sent without TLS to a
            broker that a service with TLS names.
        """
        key = (self._identities.principal_of(asker), address)
        pool = self._pools.get(key)
        if pool is None:
            pool = self._new_pool(key)
        elif len(self._pools) > 1:
            self._pools.move_to_end(key)
        return await pool.use(ask)

    def sweep(self) -> None:
        """Close the connections of principals that are gone, whose credentials have expired, or that ask nothing."""
        idle_since = asyncio.get_running_loop().time() - self._options.idle
        for key, pool in list(self._pools.items()):
            principal = key[0]
            if self._identities.is_gone(principal) or (
                pool.is_idle and self._identities.has_expired(principal)
            ):
                self._close(key, "gone")
            elif key != _OWN and pool.is_idle and pool.used_at < idle_since:
                self._close(key, "idle")

    def _new_pool(self, key: _Key) -> ConnectionPool[LookupSession]:
        if self._stopped:
            raise ConnectionLost(f"no connection to {self._service}: it is closed")
        principal, address = key
        url, health = self._service, self._health if principal is None else self._health.for_principal()
        if address is not None:
            url = ServiceUrl.parse(address)
            if self.is_tls and not url.is_tls:
                raise TlsFailed(
                    f"the brokers name {address}, which has no TLS: credentials are not sent there"
                )
            health = self._health.of(url.addresses)
        if len(self._pools) >= _MOST_POOLS and not self._evict(with_connections=False):
            raise ConnectionLost("too many clients wait for connections to the brokers")

        async def connect(broker: Address, on_lost: Callable[[], None]) -> LookupSession:
            try:
                return await self._connector.connect(
                    broker,
                    self._identities.identity_of(principal),
                    is_tls=url.is_tls,
                    max_frame=self._max_frame,
                    on_lost=on_lost,
                )
            except ClientError as failed:
                if is_of_identity(failed) and not self._identities.by_client:
                    # Perhaps they refuse the gateway: the watch finds out, and logs it.
                    self._health.doubt_all()
                raise

        pool = self._pools[key] = ConnectionPool(
            self._options.pool,
            health,
            self._places,
            connect,
            shown=str(url),
            size=self._size,
            busy=self._busy,
            on_loss=partial(self._count, "lost"),
        )
        return pool

    def _evict(self, *, with_connections: bool = True) -> bool:
        """Close the pool that was not used for the longest time; returns whether there was one."""
        for key, pool in self._pools.items():
            if pool.is_idle and (pool.connections or not with_connections):
                self._close(key, "evicted")
                return True
        return False

    def _close(self, key: _Key, reason: str) -> None:
        pool = self._pools.pop(key)
        self._count(reason, pool.connections)
        pool.close()

    def _count(self, reason: str, number: int = 1) -> None:
        self.closed[reason] += number
