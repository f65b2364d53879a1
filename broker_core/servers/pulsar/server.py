"""The server of Pulsar's protocol: it listens, admits connections, and drains them at the end.

A connection that gets no place is closed with an error, in answer to its CONNECT. It holds a descriptor meanwhile, so
that takes a second at most, for a few of them at a time; the others get the error at once, which a client may miss: if
it sends after the end, the system drops what it has not read.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Final

from broker_core.access import Asker, Client, Clients, Peer
from broker_core.errors import ServerError
from broker_core.memory import Permits
from broker_core.metrics import Metrics
from broker_core.pipeline import Pipeline
from broker_core.servers.admission import ConnectionPlace
from broker_core.servers.arrival import TlsEntrance
from broker_core.servers.connection import ClientConnection, ConnectionServer, FrameSender
from broker_core.servers.pulsar.client_watchers import Watching
from broker_core.servers.pulsar.command_handler import PulsarCommandHandler, PulsarOptions, PulsarServices
from broker_core.servers.pulsar.listing_job import ClientPatterns, SmallAnswers
from broker_core.service import Admission, ListingFeeds, LookupService, Quotas
from broker_core.settings import LimitsSettings
from broker_core.wire.pulsar import commands

__all__ = ["MESSAGES", "PulsarServer", "RefusedConnection", "RefusedConnections"]


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
        """Listen; port 0 is a free one. Returns the address. Raises :exc:`OSError` if it is not free."""
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


#: The text for a client, by the reason in the metrics.
MESSAGES: Final = {
    "connections": "Reached the maximum number of connections (limits.connections)",
    "address": "Reached the maximum number of connections of one address (limits.connections_per_address)",
    "files": "Reached the maximum number of connections (the limit of open files)",
}
_FRAMES: Final = {
    reason: commands.error(commands.CONNECTION_REQUEST_ID, ServerError.NotAllowedError, message)
    for reason, message in MESSAGES.items()
}

#: Seconds for a client to send CONNECT, to read the answer and to close.
_DEADLINE: Final = 1.0
#: Bytes that are read from a refused client.
_MOST: Final = 64 * 1024


class RefusedConnection(asyncio.Protocol):
    """The protocol of a refused connection; ``ended`` is called with it when it is over."""

    def __init__(self, reason: str, ended: Callable[[RefusedConnection], None]) -> None:
        self._frame = _FRAMES[reason]
        self._ended = ended
        self._is_sent = False
        self._received = 0
        self._transport: asyncio.Transport
        self._timer: asyncio.TimerHandle

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._timer = asyncio.get_running_loop().call_later(_DEADLINE, self._end)

    def data_received(self, data: bytes) -> None:
        self._send_frame()
        self._received += len(data)
        if self._received > _MOST:
            self._transport.abort()

    def connection_lost(self, _error: Exception | None) -> None:
        self._timer.cancel()
        self._ended(self)

    def abort(self) -> None:
        """Close at once."""
        self._transport.abort()

    def _send_frame(self) -> None:
        if not self._is_sent:
            self._is_sent = True
            self._transport.write(self._frame)
            self._transport.write_eof()

    def _end(self) -> None:
        self._send_frame()
        self._transport.abort()


class RefusedConnections:
    """Refused connections of one server, ``most`` at a time (:class:`broker_core.servers.arrival.Refusals`)."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: set[asyncio.Protocol] = set()

    def __len__(self) -> int:
        return len(self._open)

    def begin(self, reason: str) -> asyncio.Protocol | None:
        if len(self._open) >= self._most:
            return None
        refusal = RefusedConnection(reason, self._open.discard)
        self._open.add(refusal)
        return refusal

    def forget(self, refusal: asyncio.Protocol) -> None:
        self._open.discard(refusal)

    def at_once(self, sock: socket.socket, reason: str) -> None:
        with sock:
            try:
                sock.recv(_MOST)  # its CONNECT, if that is here already
            except OSError:
                pass
            try:
                sock.send(_FRAMES[reason])
                sock.shutdown(socket.SHUT_WR)
            except OSError:
                pass

    async def close(self) -> None:
        """Close all refused connections."""
        while self._open:
            for refusal in list(self._open):
                assert isinstance(refusal, RefusedConnection)
                refusal.abort()
            await asyncio.sleep(0)
