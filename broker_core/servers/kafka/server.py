"""The server of Kafka's protocol: it listens, admits connections, and drains them at the end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

from broker_core.access import Client, Clients, Peer
from broker_core.errors import BrokerCoreError
from broker_core.quantities import ListenAddress
from broker_core.servers.admission import ConnectionPlace
from broker_core.servers.arrival import TlsEntrance
from broker_core.servers.connection import ClientConnection, ConnectionServer, FrameSender
from broker_core.servers.kafka.apis import HANDLERS
from broker_core.servers.kafka.gateway import GATEWAY_HANDLERS
from broker_core.servers.kafka.request_handler import KafkaRequestHandler
from broker_core.servers.kafka.services import KafkaServices, ShownNode
from broker_core.servers.kafka.topics.encoded_configs import checked_configs
from broker_core.settings import KafkaSettings

__all__ = ["KafkaServer", "NoNodePorts"]


class NoNodePorts(BrokerCoreError):
    """The cluster has more nodes than there are ports for: ``nodes`` have none."""

    def __init__(self, nodes: Sequence[int]) -> None:
        ids = ", ".join(map(str, nodes[:10])) + (", ..." if len(nodes) > 10 else "")
        which = f"node {ids}" if len(nodes) == 1 else f"the nodes {ids}"
        super().__init__(
            f"kafka.upstream.ports: there is no port for {which} of the Kafka cluster: widen the range"
        )


class KafkaServer(ConnectionServer):
    """Accepts clients of Kafka's protocol on one address, and on another one over TLS."""

    def __init__(
        self, services: KafkaServices, *, tls: TlsEntrance | None = None, clients: Clients | None = None
    ) -> None:
        """``tls`` is for :meth:`start_tls`; ``clients`` are the clients of all servers of the broker."""
        options = services.options
        super().__init__(
            "kafka",
            options.times,
            services.pipeline.permits,
            services.metrics,
            options.limits,
            connections=options.connections,
            haproxy_from=options.kafka.haproxy_from,
            file_ceiling=options.file_ceiling,
            clients=clients,
        )
        self._services = services
        self._tls = tls
        services.metrics.gauge(
            "kafka_connections", "Open connections of Kafka clients.", lambda: self.connections
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
        """Listen; port 0 is a free one. Returns the address. Raises :exc:`OSError` if it is not free."""
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

        def connection(peer: Peer, place: ConnectionPlace) -> ClientConnection:
            return self._connection(node, peer, place)

        address = await self._arrivals.listen(host, port, connection, tls)
        shown = ListenAddress.parse(advertised) if advertised else ListenAddress(host, address[1])
        node = ShownNode(node_id, shown.host, shown.port, tls=tls is not None)  # from the first connection on
        front = self._services.front
        if front is not None:
            listen = partial(self._listen_for, tls, host, shown.host)
            without = await front.ports.add(shown.host, listen, front.node_ids, tls=tls is not None)
            if without:
                raise NoNodePorts(without)
        return address

    async def _listen_for(
        self, tls: TlsEntrance | None, host: str, shown: str, of_cluster: int, port: int
    ) -> Callable[[], None]:
        """Listen for clients of a node of the cluster; the returned function ends it."""
        node_id = self._services.options.kafka.node_id
        node = ShownNode(node_id, shown, port, of_cluster, tls=tls is not None)
        address = await self._arrivals.listen(host, port, partial(self._connection, node), tls)
        return partial(self._arrivals.end, address)

    def close(self) -> None:
        """Close the sources of requests, after :meth:`stop`."""
        self._services.identities.close()
        self._services.authorizer.close()
        self._services.large_requests.close()

    def _connection(self, node: ShownNode, peer: Peer, place: ConnectionPlace) -> ClientConnection:
        handlers = HANDLERS if self._services.front is None else GATEWAY_HANDLERS
        clock = asyncio.get_running_loop().time

        def handler(client: Client, sender: FrameSender) -> KafkaRequestHandler:
            return KafkaRequestHandler(self._services, handlers, peer, node, clock, client, sender.send)

        return self._connected(handler, place, peer.remote_address, in_order=True)
