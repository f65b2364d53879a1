"""The server of Pulsar's protocol: it listens, admits connections, and drains them at the end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from broker_core.access import Asker, Client, Clients, Peer
from broker_core.memory import Permits
from broker_core.metrics import Metrics
from broker_core.pipeline import Pipeline
from broker_core.servers.admission import ConnectionLimits, Place, ServerLoad
from broker_core.servers.arrival import Arrivals, PreambleSources, TlsEntrance
from broker_core.servers.connection import ClientConnection, ConnectionContext, OpenConnections, Unasked
from broker_core.servers.pulsar.client_watchers import Watching
from broker_core.servers.pulsar.command_handler import PulsarCommandHandler, PulsarServices
from broker_core.servers.pulsar.pattern_lookups import AskedPatterns
from broker_core.servers.pulsar.pulsar_options import PulsarOptions
from broker_core.servers.pulsar.refused_connection import RefusedConnections
from broker_core.servers.pulsar.small_answers import SmallAnswers
from broker_core.service import Admission, ListingFeeds, LookupService, Quotas
from broker_core.settings import LimitsSettings

__all__ = ["PulsarServer"]


class PulsarServer:
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
        asked_patterns: AskedPatterns | None = None,
        clients: Clients | None = None,
    ) -> None:
        """``admission`` authenticates clients; without one that does, nobody has a role. ``identify`` changes the
        identity of a connection once more. ``tls`` is for :meth:`start_tls`. Clients may watch the questions of
        ``feeds``. ``asked_patterns`` notes their patterns. ``clients`` are the clients of all servers of the broker.
        """
        options = options or PulsarOptions()
        self._permits = permits
        self.load = ServerLoad(options.limits.concurrent_lookups)
        watching: Watching | None = None
        if feeds is not None and options.watchers.enabled:
            watching = Watching(feeds, options.watchers, options.limits, metrics)
        self._context = ConnectionContext(
            options.pulsar, permits, metrics, self.load, "pulsar", Clients() if clients is None else clients
        )
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
            asked_patterns,
            Quotas() if admission is None else admission.quotas,
        )
        self._loop: asyncio.AbstractEventLoop
        self._connections = OpenConnections(self.load)
        self._refusals = RefusedConnections(options.refusals)
        self._arrivals = Arrivals(
            "pulsar",
            ConnectionLimits(options.connections, options.limits.connections_per_address),
            metrics,
            proxies=PreambleSources(options.pulsar.haproxy_from),
            file_ceiling=options.file_ceiling,
            refusals=self._refusals,
        )
        self._options = options
        self._watching = watching
        self._tls = tls
        metrics.gauge("connections", "Open connections.", lambda: self.connections)
        metrics.gauge(
            "lookups_in_flight", "Requests that take a place of a lookup.", lambda: self.load.slots.taken
        )

    def limit(self, limits: LimitsSettings, connections: int | None) -> None:
        """Have other limits from now on, and ``connections`` at most. Clients that are connected stay."""
        self._options.limits = limits
        self.load.slots.limit = limits.concurrent_lookups
        if self._watching is not None:
            self._watching.limits = limits
        self._arrivals.places.limit, self._arrivals.places.per_address = (
            connections,
            limits.connections_per_address,
        )

    async def start(self, host: str, port: int) -> tuple[str, int]:
        """Listen; port 0 is a free one. Returns the address; :exc:`OSError` if it is not to be had."""
        self._loop = asyncio.get_running_loop()
        self._permits.on_pressure(self._context.answers.make_room)
        return await self._arrivals.listen(host, port, self._connection)

    async def start_tls(self, host: str, port: int) -> tuple[str, int]:
        """Listen for clients over TLS besides; the server has been started."""
        assert self._tls is not None
        return await self._arrivals.listen(host, port, self._connection, self._tls)

    async def stop(self, drain: float) -> None:
        """Stop accepting, let requests end for up to ``drain`` seconds, then close all connections."""
        if not self._arrivals.sockets:
            return
        await self._arrivals.close()
        await self._refusals.close()
        await self._connections.close(drain)

    @property
    def connections(self) -> int:
        return len(self._connections)

    def _connection(self, peer: Peer, place: Place) -> ClientConnection:
        return ClientConnection(
            self._context,
            partial(self._handler, peer),
            place,
            address=peer.remote_address,
            opened=self._connections.opened,
            closed=self._connections.closed,
        )

    def _handler(self, peer: Peer, client: Client, unasked: Unasked) -> PulsarCommandHandler:
        return PulsarCommandHandler(self._services, peer, self._loop.time, client, unasked)


def _as_it_says(asker: Asker) -> Asker:
    return asker
