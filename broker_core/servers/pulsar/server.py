"""The server of Pulsar's protocol: it listens, admits connections, and drains them at the end.

A connection goes from its acceptance to its protocol in steps: the preamble of a proxy that is in front, a place, the
TLS handshake.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine
from functools import partial
from operator import itemgetter
from typing import Any, Final

import structlog

from broker_core.access.asker import Asker
from broker_core.access.authentication import Authenticator
from broker_core.access.peer import Peer
from broker_core.access.sessions import Sessions
from broker_core.memory.permit_budget import PermitBudget
from broker_core.memory.permits import Permits
from broker_core.metrics.metrics import Metrics
from broker_core.pipeline import Pipeline
from broker_core.quantities import ListenAddress
from broker_core.servers.admission import Acceptor, ConnectionLimits, FailurePace, ServerLoad
from broker_core.servers.arrival import (
    PreambleSources,
    RefusedArrival,
    TlsEntrance,
    TlsTransport,
    common_name,
)
from broker_core.servers.authentication import CredentialChecks, Expiries
from broker_core.servers.connection import ClientConnection, ConnectionContext, Unasked
from broker_core.servers.pulsar.command_handler import PulsarCommandHandler, PulsarServices
from broker_core.servers.pulsar.lookup_service import LookupService
from broker_core.servers.pulsar.options import PulsarOptions
from broker_core.servers.pulsar.refused_connection import RefusedConnection, refuse_at_once
from broker_core.servers.pulsar.small_answers import SmallAnswers

__all__ = ["PulsarServer"]

_log = structlog.get_logger(__name__)

#: Connections that are accepted in one turn of the event loop.
_AT_ONCE: Final = 16
#: Seconds for requests to end that were cancelled.
_LAST_TASKS: Final = 5.0


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
        authenticator: Authenticator | None = None,
        sessions: Sessions | None = None,
        tls: TlsEntrance | None = None,
    ) -> None:
        """``authenticator`` says who clients are; without one that is enabled, nobody has a role. ``sessions`` gets
        their credentials, where something needs them. ``identify`` changes the identity of a connection once more.
        ``tls`` is for :meth:`start_tls`.
        """
        options = options or PulsarOptions()
        self._options = options
        self._permits = permits
        self._metrics = metrics
        self.load = ServerLoad(options.limits.concurrent_lookups)
        #: How long an address waits that fails to get in again and again.
        self.failure_pace = FailurePace()
        self._expiries = Expiries()
        checks: CredentialChecks | None = None
        if authenticator is not None and authenticator.enabled:
            checks = CredentialChecks(
                "pulsar", authenticator, metrics, self.failure_pace, self._expiries, sessions
            )
        self._context = ConnectionContext(options.pulsar, permits, metrics, self.load)
        self._services = PulsarServices(
            pipeline,
            lookups,
            metrics,
            options,
            self.load.slots,
            identify or _as_it_says,
            SmallAnswers(pipeline),
            checks,
        )
        self._loop: asyncio.AbstractEventLoop
        self._stopping = False
        self._connections: set[ClientConnection] = set()
        self._all_closed: asyncio.Event
        self._places = ConnectionLimits(options.connections, options.limits.connections_per_address)
        self._refusals: set[RefusedConnection] = set()
        self._opening: set[asyncio.Task[None]] = set()
        self._arriving: set[asyncio.Task[None]] = set()  # connections whose clients have yet to do something
        self._proxies = PreambleSources(options.pulsar.haproxy_from)
        self._tls = tls
        self._acceptor = self._acceptor_of(None)
        self._tls_acceptor = self._acceptor_of(tls)
        self._preamble = metrics.counter(
            "haproxy_preambles",
            "Connections of proxies by what their preamble tells: client (its address), own (a connection of the "
            "proxy itself), refused (none, or a wrong one).",
            "outcome",
            known=("client", "own", "refused"),
        )
        metrics.gauge("connections", "Open connections.", lambda: self.connections)
        metrics.gauge(
            "lookups_in_flight", "Requests that take a place of a lookup.", lambda: self.load.slots.taken
        )

    async def start(self, host: str, port: int) -> tuple[str, int]:
        """Listen; port 0 is a free one. Returns the address; :exc:`OSError` where it is not to be had."""
        self._loop = asyncio.get_running_loop()
        self._permits.on_pressure(self.make_room)
        self._all_closed = asyncio.Event()
        return await self._acceptor.listen(host, port)

    async def start_tls(self, host: str, port: int) -> tuple[str, int]:
        """Listen for clients over TLS besides; the server has been started."""
        assert self._tls is not None
        return await self._tls_acceptor.listen(host, port)

    async def stop(self, drain: float) -> None:
        """Stop accepting, let requests end for up to ``drain`` seconds, then close all connections."""
        if not self._acceptor.sockets:
            return
        self._stopping = True
        self._acceptor.close()
        self._tls_acceptor.close()
        for task in self._arriving:
            task.cancel()
        if under_way := self._opening | self._arriving:
            await asyncio.wait(under_way)
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
        self._expiries.close()
        if self.load.request_tasks:
            await asyncio.wait(
                self.load.request_tasks, timeout=_LAST_TASKS
            )  # cancelled with their connections

    def make_room(self, budget: PermitBudget) -> None:
        """A request has waited long for permits of ``budget``: close the slowest reader whose answer holds some.

        Only the slow client pays: it asks again, while the others would get no answer at all.
        """
        now = self._loop.time()
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

    def _acceptor_of(self, tls: TlsEntrance | None) -> Acceptor:
        return Acceptor(partial(self._accepted, tls), at_once=_AT_ONCE, on_pause=self._metrics.accept_paused)

    def _accepted(self, tls: TlsEntrance | None, sock: socket.socket, peer: Any) -> None:
        """Someone has connected; a proxy tells who it is."""
        address = ListenAddress(str(peer[0]), int(peer[1]))
        if self._proxies.has(address.host) and not self._is_near_file_limit(sock):
            self._start(self._arriving, self._read_preamble(tls, sock, address))
        else:
            self._admit(tls, sock, address)

    async def _read_preamble(
        self, tls: TlsEntrance | None, sock: socket.socket, proxy: ListenAddress
    ) -> None:
        try:
            client = await self._proxies.client(sock)
        except RefusedArrival as refused:
            sock.close()
            self._preamble("refused")
            _log.info("connection of a proxy refused", peer=str(proxy), error=str(refused))
            return
        except BaseException:
            sock.close()
            raise
        self._preamble("own" if client is None else "client")
        self._admit(tls, sock, client or proxy)

    def _is_near_file_limit(self, sock: socket.socket) -> bool:
        ceiling = self._options.file_ceiling
        return ceiling is not None and sock.fileno() >= ceiling

    def _admit(self, tls: TlsEntrance | None, sock: socket.socket, address: ListenAddress) -> None:
        """Give a client a place, or tell it that there is none."""
        host = address.host
        reason = "files" if self._is_near_file_limit(sock) else self._places.take(host)
        if reason is None:
            gone = partial(self._places.give_back, host)
            self._open(tls, sock, address, partial(self._connection, gone), gone)
            return
        self._metrics.connection_refused(reason)
        _log.warning("connection refused", peer=host, reason=reason, connections=self._places.taken)
        if len(self._refusals) < self._options.refusals:
            refusal = RefusedConnection(reason, self._refusals.discard)
            self._refusals.add(refusal)
            self._open(tls, sock, address, lambda _: refusal, partial(self._refusals.discard, refusal))
        elif tls is None:
            refuse_at_once(sock, reason)
        else:
            sock.close()

    def _open(
        self,
        tls: TlsEntrance | None,
        sock: socket.socket,
        address: ListenAddress,
        protocol: Callable[[Peer], asyncio.Protocol],
        gone: Callable[[], None],
    ) -> None:
        if tls is None:
            plain = partial(protocol, Peer(str(address), "pulsar"))
            self._start(self._opening, self._connect(sock, plain, gone))
        else:
            self._start(self._arriving, self._secure(tls, sock, address, protocol, gone))

    def _start(self, tasks: set[asyncio.Task[None]], step: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(step)
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    async def _connect(
        self, sock: socket.socket, protocol: Callable[[], asyncio.Protocol], gone: Callable[[], None]
    ) -> None:
        try:
            await self._loop.connect_accepted_socket(protocol, sock)
        except OSError as error:  # before the protocol has heard of it
            _log.warning("a connection could not be accepted", error=str(error))
            sock.close()
            gone()

    async def _secure(
        self,
        tls: TlsEntrance,
        sock: socket.socket,
        address: ListenAddress,
        protocol: Callable[[Peer], asyncio.Protocol],
        gone: Callable[[], None],
    ) -> None:
        try:
            secured = await tls.enter(sock, address.host)
        except RefusedArrival as refused:
            gone()
            _log.info("TLS connection refused", peer=str(address), reason=refused.reason, error=str(refused))
        except BaseException:
            gone()
            raise
        else:
            peer = Peer(str(address), "pulsar", True, common_name(secured))
            TlsTransport(secured, protocol(peer), (address.host, address.port))

    def _connection(self, gone: Callable[[], None], peer: Peer) -> ClientConnection:
        def closed(connection: ClientConnection) -> None:
            self._closed(connection)
            gone()

        return ClientConnection(
            self._context,
            partial(self._handler, peer),
            address=peer.remote_address,
            opened=self._opened,
            closed=closed,
        )

    def _handler(self, peer: Peer, _address: str, unasked: Unasked) -> PulsarCommandHandler:
        return PulsarCommandHandler(self._services, peer, self._loop.time, unasked)

    def _opened(self, connection: ClientConnection) -> None:
        self._connections.add(connection)
        self.load.connections += 1
        if self._stopping:  # it was accepted in the last moment
            connection.abort()

    def _closed(self, connection: ClientConnection) -> None:
        self._connections.discard(connection)
        self.load.connections -= 1
        if not self._connections:
            self._all_closed.set()


def _as_it_says(asker: Asker) -> Asker:
    return asker
