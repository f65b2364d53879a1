"""Listening for clients, who gets a place, and what all connections share."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from functools import partial
from operator import itemgetter
from typing import Any, Final

import structlog

from broker_core.access.asker import Asker
from broker_core.memory.permit_budget import PermitBudget
from broker_core.memory.permits import Permits
from broker_core.metrics.metrics import Metrics
from broker_core.pipeline import Pipeline
from broker_core.servers.admission import Acceptor, ConnectionLimits, RequestSlots
from broker_core.servers.connection.client_connection import ClientConnection
from broker_core.servers.pulsar.lookup_service import LookupService
from broker_core.servers.pulsar.options import PulsarOptions
from broker_core.servers.pulsar.refused_connection import RefusedConnection, refuse_at_once
from broker_core.wire.pulsar import frame_limit

__all__ = ["PulsarServer"]

_log = structlog.get_logger(__name__)

#: All incomplete frames and long requests together, in bytes; requests are small, so that only an attack comes near.
_MAX_BUFFERED: Final = 64 * 1024 * 1024
#: Connections that are accepted in one turn of the event loop.
_AT_ONCE: Final = 16
#: Seconds for requests to end that were cancelled.
_LAST_TASKS: Final = 5.0


class PulsarServer:
    """Accepts clients of Pulsar's protocol on one address."""

    def __init__(
        self,
        pipeline: Pipeline,
        lookups: LookupService,
        permits: Permits,
        metrics: Metrics,
        options: PulsarOptions | None = None,
        *,
        identify: Callable[[Asker], Asker] | None = None,
    ) -> None:
        """``identify`` says who a connection is, once it is connected; without it, who it says that it is."""
        self.pipeline = pipeline
        self.lookups = lookups
        self.permits = permits
        self.metrics = metrics
        self.options = options or PulsarOptions()
        self.identify: Callable[[Asker], Asker] = identify or _as_it_says
        self.frame_limit = frame_limit(self.options.pulsar.max_message_size)
        self.slots = RequestSlots(self.options.limits.concurrent_lookups)
        self.buffered_bytes = 0
        self.tasks: set[asyncio.Task[None]] = set()  # of the requests of all connections
        self.loop: asyncio.AbstractEventLoop
        self._stopping = False
        self._connections: set[ClientConnection] = set()
        self._all_closed: asyncio.Event
        self._places = ConnectionLimits(self.options.connections, self.options.limits.connections_per_address)
        self._refusals: set[RefusedConnection] = set()
        self._opening: set[asyncio.Task[None]] = set()
        self._acceptor = Acceptor(self._accepted, at_once=_AT_ONCE, on_pause=metrics.accept_paused)
        metrics.gauge("connections", "Open connections.", lambda: self.connections)
        metrics.gauge(
            "lookups_in_flight", "Requests that take a place of a lookup.", lambda: self.slots.taken
        )

    async def start(self, host: str, port: int) -> tuple[str, int]:
        """Listen; port 0 is a free one. Returns the address; :exc:`OSError` where it is not to be had."""
        self.loop = asyncio.get_running_loop()
        self.permits.on_pressure(self.make_room)
        self._all_closed = asyncio.Event()
        return await self._acceptor.listen(host, port)

    async def stop(self, drain: float) -> None:
        """Accept nobody, let what is under way end for up to ``drain`` seconds, then close all connections."""
        if not self._acceptor.sockets:
            return
        self._stopping = True
        self._acceptor.close()
        if self._opening:
            await asyncio.wait(self._opening)
        while self._refusals:
            for refusal in list(self._refusals):
                refusal.abort()
            await asyncio.sleep(0)
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
        if self.tasks:
            await asyncio.wait(self.tasks, timeout=_LAST_TASKS)  # cancelled with their connections

    def make_room(self, budget: PermitBudget) -> None:
        """Somebody has waited long for permits of ``budget``: close the slowest reader of an answer that has some.

        Whoever is slow pays alone: its client asks again, while the others would get no answer at all.
        """
        now = self.loop.time()
        slow = [
            (seconds, connection)
            for connection in self._connections
            if (seconds := connection.holds_slowly(budget, now)) is not None
        ]
        if slow:
            max(slow, key=itemgetter(0))[1].make_room()

    @property
    def connections(self) -> int:
        return len(self._connections)

    def _accepted(self, sock: socket.socket, peer: Any) -> None:
        """Someone has connected: give him a place, or tell him that there is none."""
        host = str(peer[0])
        ceiling = self.options.file_ceiling
        reason = "files" if ceiling is not None and sock.fileno() >= ceiling else self._places.take(host)
        if reason is None:
            gone = partial(self._places.give_back, host)
            self._open(sock, lambda: ClientConnection(self, gone), gone)
            return
        self.metrics.connection_refused(reason)
        _log.warning("connection refused", peer=host, reason=reason, connections=self._places.taken)
        if len(self._refusals) < self.options.refusals:
            refusal = RefusedConnection(reason, self._refusals.discard)
            self._refusals.add(refusal)
            self._open(sock, lambda: refusal, partial(self._refusals.discard, refusal))
        else:
            refuse_at_once(sock, reason)

    def _open(
        self, sock: socket.socket, protocol: Callable[[], asyncio.Protocol], gone: Callable[[], None]
    ) -> None:
        task = self.loop.create_task(self._connect(sock, protocol, gone))
        self._opening.add(task)
        task.add_done_callback(self._opening.discard)

    async def _connect(
        self, sock: socket.socket, protocol: Callable[[], asyncio.Protocol], gone: Callable[[], None]
    ) -> None:
        try:
            await self.loop.connect_accepted_socket(protocol, sock)
        except OSError as error:  # before the protocol has heard of it
            _log.warning("a connection could not be accepted", error=str(error))
            sock.close()
            gone()

    def opened(self, connection: ClientConnection) -> None:
        """For connections: one more."""
        self._connections.add(connection)
        if self._stopping:  # it was accepted in the last moment
            connection.abort()

    def closed(self, connection: ClientConnection) -> None:
        """For connections: one less."""
        self._connections.discard(connection)
        if not self._connections:
            self._all_closed.set()

    def buffered(self, change: int) -> None:
        """For connections: they hold so many bytes more (or less) of frames that are incomplete, wait or are long."""
        self.buffered_bytes += change

    def has_room_for(self, size: int) -> bool:
        """Whether a command of ``size`` bytes may be held while it is under way."""
        return self.buffered_bytes + size <= _MAX_BUFFERED

    def buffered_too_much(self, size: int) -> bool:
        """Whether a connection that holds ``size`` bytes has to go: all hold too much, and this one is a large part."""
        return self.buffered_bytes > _MAX_BUFFERED and size * len(self._connections) >= self.buffered_bytes


def _as_it_says(asker: Asker) -> Asker:
    return asker
