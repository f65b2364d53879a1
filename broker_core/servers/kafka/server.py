"""The server of Kafka's protocol: it listens, admits connections, and drains them at the end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

from broker_core.access import Client, Clients, Peer
from broker_core.errors import BrokerCoreError
from broker_core.quantities import ListenAddress
from broker_core.servers.admission import ConnectionLimits, Place, ServerLoad
from broker_core.servers.arrival import Arrivals, PreambleSources, TlsEntrance
from broker_core.servers.connection import ClientConnection, ConnectionContext, OpenConnections, Unasked
from broker_core.servers.kafka.apis import HANDLERS
from broker_core.servers.kafka.gateway import GATEWAY_HANDLERS
from broker_core.servers.kafka.request_handler import KafkaRequestHandler
from broker_core.servers.kafka.services import KafkaServices, ShownNode
from broker_core.servers.kafka.topics.encoded_configs import checked_configs
from broker_core.settings import KafkaSettings, LimitsSettings

__all__ = ["KafkaServer", "NoNodePorts"]


class NoNodePorts(BrokerCoreError):
    """The cluster has more nodes than there are ports for: ``nodes`` have none."""

    def __init__(self, nodes: Sequence[int]) -> None:
        ids = ", ".join(map(str, nodes[:10]))
        super().__init__(f"kafka.upstream.ports: there is no port for the nodes {ids} of the Kafka cluster")


class KafkaServer:
    """Accepts clients of Kafka's protocol on one address, and on another one over TLS."""

    def __init__(
        self, services: KafkaServices, *, tls: TlsEntrance | None = None, clients: Clients | None = None
    ) -> None:
        """``tls`` is for :meth:`start_tls`; ``clients`` are the clients of all servers of the broker."""
        self._services = services
        self._tls = tls
        options = services.options
        self.load = ServerLoad(options.limits.concurrent_lookups)
        self._context = ConnectionContext(
            options.times,
            services.pipeline.permits,
            services.metrics,
            self.load,
            "kafka",
            Clients() if clients is None else clients,
        )
        self._connections = OpenConnections(self.load)
        self._arrivals = Arrivals(
            "kafka",
            ConnectionLimits(options.connections, options.limits.connections_per_address),
            services.metrics,
            proxies=PreambleSources(options.kafka.haproxy_from),
            file_ceiling=options.file_ceiling,
        )
        self._loop: asyncio.AbstractEventLoop
        services.metrics.gauge(
            "kafka_connections", "Open connections of Kafka clients.", lambda: len(self._connections)
        )

    def limit(self, limits: LimitsSettings, connections: int | None) -> None:
        """Replace the limits; ``connections`` are the most at once. Clients that are connected stay."""
        self.load.slots.limit = limits.concurrent_lookups
        self._arrivals.places.limit, self._arrivals.places.per_address = (
            connections,
            limits.connections_per_address,
        )

    def prepare(self, kafka: KafkaSettings) -> Callable[[], None]:
        """Check a new table ``[kafka]``; the returned function puts its live settings in force.

        Raises :exc:`~broker_core.kafka.configs.InvalidConfig`.
        """
        checked_configs(kafka)
        services = self._services

        def put_in_force() -> None:
            services.options.kafka = kafka
            services.configs.inherit(kafka.configs)
            services.identities.place(kafka)

        return put_in_force

    async def start(self, host: str, port: int) -> tuple[str, int]:
        """Listen; port 0 is a free one. Returns the address; :exc:`OSError` if it is not to be had."""
        self._loop = asyncio.get_running_loop()
        self._services.pipeline.permits.on_pressure(self._context.answers.make_room)
        return await self._listen(None, host, port, self._services.options.kafka.advertised)

    async def start_tls(self, host: str, port: int) -> tuple[str, int]:
        """Listen for clients over TLS besides; the server has been started."""
        tls = self._services.options.kafka.tls
        assert self._tls is not None
        assert tls is not None
        return await self._listen(self._tls, host, port, tls.advertised)

    async def _listen(
        self, tls: TlsEntrance | None, host: str, port: int, advertised: str
    ) -> tuple[str, int]:
        node_id = self._services.options.kafka.node_id
        node = ShownNode(node_id, host, port)

        def connection(peer: Peer, place: Place) -> ClientConnection:
            return self._connection(node, peer, place)

        address = await self._arrivals.listen(host, port, connection, tls)
        told = ListenAddress.parse(advertised) if advertised else ListenAddress(host, address[1])
        node = ShownNode(node_id, told.host, told.port, tls=tls is not None)  # from the first connection on
        front = self._services.front
        if front is not None:
            listen = partial(self._listen_for, tls, host, told.host)
            without = await front.ports.add(told.host, listen, front.node_ids, tls=tls is not None)
            if without:
                raise NoNodePorts(without)
        return address

    async def _listen_for(
        self, tls: TlsEntrance | None, host: str, told: str, of_cluster: int, port: int
    ) -> Callable[[], None]:
        """Listen for clients of a node of the cluster; the returned function ends it."""
        node_id = self._services.options.kafka.node_id
        node = ShownNode(node_id, told, port, of_cluster, tls=tls is not None)
        address = await self._arrivals.listen(host, port, partial(self._connection, node), tls)
        return partial(self._arrivals.end, address)

    async def stop(self, drain: float) -> None:
        """Stop accepting, let requests end for up to ``drain`` seconds, then close all connections."""
        if not self._arrivals.sockets:
            return
        await self._arrivals.close()
        await self._connections.close(drain)
        self._services.identities.close()

    def close(self) -> None:
        """Close the sources of requests, after :meth:`stop`."""
        self._services.authorizer.close()
        self._services.large_requests.close()

    def _connection(self, node: ShownNode, peer: Peer, place: Place) -> ClientConnection:
        handlers = HANDLERS if self._services.front is None else GATEWAY_HANDLERS

        def handler(client: Client, unasked: Unasked) -> KafkaRequestHandler:
            return KafkaRequestHandler(self._services, handlers, peer, node, self._loop.time, client, unasked)

        return ClientConnection(
            self._context,
            handler,
            place,
            address=peer.remote_address,
            opened=self._connections.opened,
            closed=self._connections.closed,
            in_order=True,
        )
