"""The connections of one server, whatever its protocol: they are admitted, bounded, and drained at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from ipaddress import IPv4Network, IPv6Network

from broker_core.access import Client, Clients
from broker_core.memory import Permits
from broker_core.metrics import Metrics
from broker_core.servers.admission import ConnectionLimits, ConnectionPlace
from broker_core.servers.arrival import Arrivals, Refusals
from broker_core.servers.connection.client_connection import (
    ClientConnection,
    ConnectionContext,
    ConnectionSettings,
)
from broker_core.servers.connection.command_handler import CommandHandler, FrameSender
from broker_core.servers.connection.server_load import ServerLoad
from broker_core.settings import LimitsSettings

__all__ = ["ConnectionServer"]


class ConnectionServer:
    """The server of the protocol ``transport``, which listens to nobody yet.

    ``connections`` is how many clients may be connected (``None``: any number). Proxies in the networks
    ``haproxy_from`` give the addresses of clients. A client whose descriptor is ``file_ceiling`` or above gets no
    place; ``refusals`` refuses it. ``clients`` are the clients of all servers of the broker.
    """

    def __init__(
        self,
        transport: str,
        settings: ConnectionSettings,
        permits: Permits,
        metrics: Metrics,
        limits: LimitsSettings,
        *,
        connections: int | None,
        haproxy_from: Iterable[IPv4Network | IPv6Network],
        file_ceiling: int | None,
        refusals: Refusals | None = None,
        clients: Clients | None = None,
    ) -> None:
        self.load = ServerLoad(limits.concurrent_lookups)
        self._context = ConnectionContext(
            settings, permits, metrics, self.load, transport, Clients() if clients is None else clients
        )
        permits.on_pressure(self._context.answers.make_room)
        self._arrivals = Arrivals(
            transport,
            ConnectionLimits(connections, limits.connections_per_address),
            metrics,
            haproxy_from=haproxy_from,
            file_ceiling=file_ceiling,
            refusals=refusals,
        )

    @property
    def connections(self) -> int:
        """The number of connected clients."""
        return len(self.load.connections)

    def limit(self, limits: LimitsSettings, connections: int | None) -> None:
        """Replace the limits; ``connections`` are the most at once. Clients that are connected stay."""
        self.load.slots.limit = limits.concurrent_lookups
        places = self._arrivals.places
        places.limit, places.per_address = connections, limits.connections_per_address

    async def stop(self, drain: float) -> None:
        """Stop accepting, let requests end for up to ``drain`` seconds, then close all connections."""
        if self._arrivals.sockets:
            await self._arrivals.close()
            await self.load.close(drain)

    def _connected(
        self,
        handler: Callable[[Client, FrameSender], CommandHandler],
        place: ConnectionPlace,
        address: str,
        *,
        in_order: bool = False,
    ) -> ClientConnection:
        """The connection of a client that has a place (:class:`ClientConnection`)."""
        return ClientConnection(
            self._context,
            handler,
            place,
            address=address,
            in_order=in_order,
        )
