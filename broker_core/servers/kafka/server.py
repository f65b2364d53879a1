"""The server of Kafka's protocol: it listens, admits connections, and drains them at the end."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Coroutine
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import Any, Final

import structlog

from broker_core.access.peer import Peer
from broker_core.memory.permit_budget import PermitBudget
from broker_core.quantities import ListenAddress
from broker_core.servers.admission import Acceptor, ConnectionLimits, ServerLoad
from broker_core.servers.arrival import RefusedArrival, TlsEntrance, TlsTransport, common_name
from broker_core.servers.connection import ClientConnection, ConnectionContext, Unasked
from broker_core.servers.kafka.apis import HANDLERS
from broker_core.servers.kafka.request_handler import KafkaRequestHandler
from broker_core.servers.kafka.services import KafkaServices, Node

__all__ = ["KafkaServer"]

_log = structlog.get_logger(__name__)

#: Connections that are accepted in one turn of the event loop.
_AT_ONCE: Final = 16
#: Seconds for requests to end that were cancelled.
_LAST_TASKS: Final = 5.0


@dataclass(slots=True)
class _Listener:
    """``node`` is what clients of this listener are told to connect to."""

    acceptor: Acceptor
    node: Node


class KafkaServer:
    """Accepts clients of Kafka's protocol on one address, and on another one over TLS."""

    def __init__(self, services: KafkaServices, *, tls: TlsEntrance | None = None) -> None:
        """``tls`` is for :meth:`start_tls`."""
        self._services = services
        self._tls = tls
        options = services.options
        self.load = ServerLoad(options.limits.concurrent_lookups)
        self._context = ConnectionContext(
            options.times, services.pipeline.permits, services.metrics, self.load
        )
        self._places = ConnectionLimits(options.connections, options.limits.connections_per_address)
        self._listeners: list[_Listener] = []
        self._connections: set[ClientConnection] = set()
        self._tasks: set[asyncio.Task[None]] = set()  # connections that are not open yet
        self._loop: asyncio.AbstractEventLoop
        self._all_closed: asyncio.Event
        self._stopping = False
        services.metrics.gauge(
            "kafka_connections", "Open connections of Kafka clients.", lambda: len(self._connections)
        )

    async def start(self, host: str, port: int) -> tuple[str, int]:
        """Listen; port 0 is a free one. Returns the address; :exc:`OSError` where it is not to be had."""
        self._loop = asyncio.get_running_loop()
        self._all_closed = asyncio.Event()
        self._services.pipeline.permits.on_pressure(self.make_room)
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
        listener = _Listener(
            Acceptor(
                lambda sock, peer: self._accepted(tls, listener, sock, peer),
                at_once=_AT_ONCE,
                on_pause=self._services.metrics.accept_paused,
            ),
            Node(node_id, host, port),
        )
        address = await listener.acceptor.listen(host, port)
        told = ListenAddress.parse(advertised) if advertised else ListenAddress(host, address[1])
        listener.node = Node(node_id, told.host, told.port)
        self._listeners.append(listener)
        return address

    async def stop(self, drain: float) -> None:
        """Stop accepting, let requests end for up to ``drain`` seconds, then close all connections."""
        if not self._listeners:
            return
        self._stopping = True
        for listener in self._listeners:
            listener.acceptor.close()
        self._listeners.clear()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(set(self._tasks))
        self._all_closed.clear()
        for connection in list(self._connections):
            connection.drain()
        if self._connections and drain > 0:
            try:
                async with asyncio.timeout(drain):
                    await self._all_closed.wait()
            except TimeoutError:
                pass
        while self._connections:
            for connection in list(self._connections):
                connection.abort()
            self._all_closed.clear()
            await self._all_closed.wait()
        self._services.identities.close()
        if self.load.request_tasks:
            await asyncio.wait(self.load.request_tasks, timeout=_LAST_TASKS)

    def close(self) -> None:
        """Close what requests read from, after :meth:`stop`."""
        self._services.authorizer.close()

    def make_room(self, budget: PermitBudget) -> None:
        """A request has waited long for permits of ``budget``: close the slowest reader whose answer holds some."""
        now = self._loop.time()
        slow = [
            (seconds, connection)
            for connection in self._connections
            if (seconds := connection.holds_slowly(budget, now)) is not None
        ]
        if slow:
            max(slow, key=itemgetter(0))[1].make_room()

    def _accepted(self, tls: TlsEntrance | None, listener: _Listener, sock: socket.socket, peer: Any) -> None:
        """Someone has connected: it gets a place, or its connection is closed; Kafka has no words for that."""
        address = ListenAddress(str(peer[0]), int(peer[1]))
        ceiling = self._services.options.file_ceiling
        near = ceiling is not None and sock.fileno() >= ceiling
        reason = "files" if near else self._places.take(address.host)
        if reason is not None:
            sock.close()
            self._services.metrics.connection_refused(reason)
            _log.warning(
                "connection refused", peer=address.host, reason=reason, connections=self._places.taken
            )
            return
        if tls is None:
            self._start(self._connect(listener, sock, address))
        else:
            self._start(self._secure(tls, listener, sock, address))

    def _start(self, step: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(step)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _connect(self, listener: _Listener, sock: socket.socket, address: ListenAddress) -> None:
        peer = Peer(str(address), "kafka")
        try:
            await self._loop.connect_accepted_socket(partial(self._connection, listener, address, peer), sock)
        except OSError as error:  # before the protocol has heard of it
            _log.warning("a connection could not be accepted", error=str(error))
            sock.close()
            self._places.give_back(address.host)

    async def _secure(
        self, tls: TlsEntrance, listener: _Listener, sock: socket.socket, address: ListenAddress
    ) -> None:
        try:
            secured = await tls.enter(sock, address.host)
        except RefusedArrival as refused:
            self._places.give_back(address.host)
            _log.info("TLS connection refused", peer=str(address), reason=refused.reason, error=str(refused))
        except BaseException:
            self._places.give_back(address.host)
            raise
        else:
            peer = Peer(str(address), "kafka", True, common_name(secured))
            TlsTransport(secured, self._connection(listener, address, peer), (address.host, address.port))

    def _connection(self, listener: _Listener, address: ListenAddress, peer: Peer) -> ClientConnection:
        def handler(_address: str, unasked: Unasked) -> KafkaRequestHandler:
            return KafkaRequestHandler(
                self._services, HANDLERS, peer, listener.node, self._loop.time, unasked
            )

        def closed(connection: ClientConnection) -> None:
            self._connections.discard(connection)
            self.load.connections -= 1
            self._places.give_back(address.host)
            if not self._connections:
                self._all_closed.set()

        return ClientConnection(
            self._context,
            handler,
            address=peer.remote_address,
            opened=self._opened,
            closed=closed,
            in_order=True,
        )

    def _opened(self, connection: ClientConnection) -> None:
        self._connections.add(connection)
        self.load.connections += 1
        if self._stopping:  # it was accepted in the last moment
            connection.abort()
