"""The server of Pulsar's protocol: it listens, admits connections, and drains them at the end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from broker_core.access import Asker, Client, Clients, Peer
from broker_core.memory import Permits
from broker_core.metrics import Metrics
from broker_core.pipeline import Pipeline
from broker_core.servers.admission import ConnectionPlace
from broker_core.servers.arrival import TlsEntrance
from broker_core.servers.connection import ClientConnection, ConnectionServer, FrameSender
from broker_core.servers.pulsar.client_watchers import Watching
from broker_core.servers.pulsar.command_handler import PulsarCommandHandler, PulsarServices
from broker_core.servers.pulsar.pattern_lookups import ClientPatterns
from broker_core.servers.pulsar.pulsar_options import PulsarOptions
from broker_core.servers.pulsar.refused_connection import RefusedConnections
from broker_core.servers.pulsar.small_answers import SmallAnswers
from broker_core.service import Admission, ListingFeeds, LookupService, Quotas
from broker_core.settings import LimitsSettings

__all__ = ["PulsarServer"]


class PulsarServer(ConnectionServer):
    """Accepts clients of Pulsar's protocol on one address, and on another one over TLS."""

    def __init__(
        self,
        pipeline: Pipeline,
        lookups: LookupService,
        permits: Permits,
        metrics: Metrics,
        options: PulsarOptions | None = None,
        *,
        identify: Callable[[Asker], Asker] | None = None,
        admission: Admission | None = None,
        tls: TlsEntrance | None = None,
        feeds: ListingFeeds | None = None,
        client_patterns: ClientPatterns | None = None,
        clients: Clients | None = None,
    ) -> None:
        """``admission`` authenticates clients; without one that does, nobody has a role. ``identify`` changes the
        identity of a connection once more. ``tls`` is for :meth:`start_tls`. Clients may watch the questions of
        ``feeds``. ``client_patterns`` notes their patterns. ``clients`` are the clients of all servers of the broker.
        """
        options = options or PulsarOptions()
        super().__init__(
            "pulsar",
            options.pulsar,
            permits,
            metrics,
            options.limits,
            connections=options.connections,
            haproxy_from=options.pulsar.haproxy_from,
            file_ceiling=options.file_ceiling,
            refusals=RefusedConnections(options.refusals),
            clients=clients,
        )
        watching: Watching | None = None
        if feeds is not None and options.watchers.enabled:
            watching = Watching(feeds, options.watchers, options.limits, metrics)
        self._services = PulsarServices(
            pipeline,
            lookups,
            metrics,
            options,
            self.load.slots,
            identify or _as_it_says,
            SmallAnswers(pipeline),
            admission,
            watching,
            client_patterns,
            Quotas() if admission is None else admission.quotas,
        )
        self._options = options
        self._watching = watching
        self._tls = tls
        metrics.gauge("connections", "Open connections.", lambda: self.connections)
        metrics.gauge(
            "lookups_in_flight", "Requests that take a place of a lookup.", lambda: self.load.slots.taken
        )

    def limit(self, limits: LimitsSettings, connections: int | None) -> None:
        super().limit(limits, connections)
        self._options.limits = limits
        if self._watching is not None:
            self._watching.limits = limits

    async def start(self, host: str, port: int) -> tuple[str, int]:
        """Listen; port 0 is a free one. Returns the address; :exc:`OSError` if it is not to be had."""
        return await self._arrivals.listen(host, port, self._connection)

    async def start_tls(self, host: str, port: int) -> tuple[str, int]:
        """Listen for clients over TLS besides; the server has been started."""
        assert self._tls is not None
        return await self._arrivals.listen(host, port, self._connection, self._tls)

    def _connection(self, peer: Peer, place: ConnectionPlace) -> ClientConnection:
        clock = asyncio.get_running_loop().time

        def handler(client: Client, sender: FrameSender) -> PulsarCommandHandler:
            return PulsarCommandHandler(self._services, peer, clock, client, sender)

        return self._connected(handler, place, peer.remote_address)


def _as_it_says(asker: Asker) -> Asker:
    return asker
