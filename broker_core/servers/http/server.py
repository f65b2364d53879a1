"""The HTTP server: its connections, and the bounds of what it reads of them.

It runs on the event loop of the broker, so it is bounded in what it reads, and a peer that sends nothing is closed. It
has a bounded number of connections: one more closes the one that was idle for the longest time, never one that is being
answered. Requests of an API have fewer places than there are connections, so that health is answered however many
requests run, and however many clients just stay.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

import structlog
from aiohttp import web

from broker_core.access import Client, Clients
from broker_core.errors import BrokerCoreError
from broker_core.quantities import ListenAddress
from broker_core.servers.admission import Acceptor
from broker_core.servers.arrival import RefusedArrival, TlsEntrance, TlsTransport
from broker_core.servers.http.api import Api
from broker_core.servers.http.api.problem_details import problem_of, with_headers
from broker_core.servers.http.endpoints import Endpoints
from broker_core.servers.http.json_responses import json_response
from broker_core.servers.http.served_connection import ServedConnection
from broker_core.servers.http.served_request import ServedRequest

__all__ = ["HttpListenError", "HttpServer"]

_log = structlog.get_logger(__name__)

#: A pattern and properties are in the first line, and the cursor of a page, which has 45,000 characters if the first
#: name has the greatest length.
_MAX_LINE_BYTES: Final = 64 * 1024
#: A token with many claims has some kilobytes.
_MAX_FIELD_BYTES: Final = 16 * 1024
_MAX_HEADERS: Final = 64
_MAX_BODY_BYTES: Final = 1024
#: Seconds that an idle connection stays; longer than the usual interval of a scrape.
_IDLE_TIMEOUT: Final = 75.0
#: The default number of connections for the pages.
_CONNECTIONS: Final = 32
#: Seconds that a request under way may take when the server stops.
_STOP_TIMEOUT: Final = 2.0


class HttpListenError(BrokerCoreError):
    """The address of ``[http] listen`` cannot be listened on; the message names it."""


class HttpServer:
    """Serves the endpoints from :meth:`start` to :meth:`stop`. ``connections`` is how many there may be in all.

    ``of_plugins`` are the routes of plugins' sites. ``tls`` is for :meth:`start_tls`. ``refused`` is called for each
    connection that has no place. ``clients`` are the clients of all servers of the broker.
    """

    def __init__(
        self,
        endpoints: Endpoints,
        *,
        apis: Sequence[Api] = (),
        of_plugins: Sequence[web.RouteDef] = (),
        connections: int = _CONNECTIONS,
        tls: TlsEntrance | None = None,
        refused: Callable[[], object] = lambda: None,
        clients: Clients | None = None,
    ) -> None:
        self._endpoints = endpoints
        self._apis = apis
        self._of_plugins = of_plugins
        self._runner: web.AppRunner | None = None
        self._most = connections
        self._refused = refused
        # One at a time: a new connection must be heard before so many others have come that its turn is over.
        self._acceptor = Acceptor(self._accepted, at_once=1)
        self._tls_acceptor = Acceptor(self._accepted_tls, at_once=1)
        self._tls = tls
        self._opening: set[asyncio.Task[None]] = set()
        self._shaking_hands: dict[asyncio.Task[None], None] = {}  # the oldest is first
        self._clients = Clients() if clients is None else clients
        self._open: dict[ServedConnection, Client] = {}  # the one used last at the end
        self._busy: set[ServedConnection] = set()
        self._nothing_busy = asyncio.Event()
        self._nothing_busy.set()
        self._address: tuple[str, int] | None = None
        self._tls_address: tuple[str, int] | None = None

    async def start(self, host: str, port: int) -> None:
        """Listen; port 0 is a free one. Raises :exc:`HttpListenError`."""
        await self._set_up()
        self._address = await self._listen("http.listen", self._acceptor, host, port)

    async def start_tls(self, host: str, port: int) -> None:
        """Listen over TLS besides; the server has been started. Raises :exc:`HttpListenError`."""
        self._tls_address = await self._listen("http.tls.listen", self._tls_acceptor, host, port)

    async def start_on(self, sock: socket.socket) -> None:
        """Serve a socket that listens already, such as a unix socket; it is closed by :meth:`stop`."""
        await self._set_up()
        self._acceptor.listen_on(sock)

    async def _listen(self, setting: str, acceptor: Acceptor, host: str, port: int) -> tuple[str, int]:
        try:
            return await acceptor.listen(host, port)
        except OSError as error:
            await self.stop()
            raise HttpListenError(
                f"{setting}: cannot listen on {host} port {port}: {_reason(error)}"
            ) from error

    async def _set_up(self) -> None:
        middlewares = [self._in_use, self._errors]
        app = web.Application(middlewares=middlewares, client_max_size=_MAX_BODY_BYTES)
        app.router.add_routes(self._endpoints.routes())
        for api in self._apis:
            app.router.add_routes(api.routes())
        app.router.add_routes(self._of_plugins)
        runner = web.AppRunner(
            app,
            handle_signals=False,
            access_log=None,
            keepalive_timeout=_IDLE_TIMEOUT,
            shutdown_timeout=_STOP_TIMEOUT,
            max_line_size=_MAX_LINE_BYTES,
            max_field_size=_MAX_FIELD_BYTES,
            max_headers=_MAX_HEADERS,
            handler_cancellation=True,  # a client that is gone holds nothing
            # Its gzip does not notice that a body is cut short. Operations decompress compressed bodies themselves.
            auto_decompress=False,
        )
        await runner.setup()
        assert runner.server is not None
        # aiohttp has no public place for a request class; on_response_prepare misses bytes that are no request at all.
        make_request = functools.partial(app._make_request, _cls=ServedRequest)  # noqa: SLF001
        runner.server.request_factory = make_request
        self._runner = runner

    @property
    def address(self) -> tuple[str, int]:
        """The host and the port that is listened on."""
        if self._address is None:
            raise RuntimeError("the HTTP server is not listening")
        return self._address

    @property
    def connections(self) -> int:
        """The number of open connections."""
        return len(self._open)

    @property
    def tls_address(self) -> tuple[str, int] | None:
        """The host and the port that is listened on over TLS, if any is."""
        return self._tls_address

    async def drain(self, seconds: float) -> None:
        """Wait until no request is under way, for some seconds at the most."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._nothing_busy.wait()

    async def stop(self) -> None:
        """Close the port and all connections; requests under way have two seconds. May be called again."""
        self._acceptor.close()
        self._tls_acceptor.close()
        for shaking in self._shaking_hands:
            shaking.cancel()
        if under_way := self._opening | self._shaking_hands.keys():
            await asyncio.wait(under_way)
        runner, self._runner, self._address, self._tls_address = self._runner, None, None, None
        if runner is not None:
            await runner.cleanup()
        self._open.clear()

    def _accepted(self, sock: socket.socket, peer: Any) -> None:
        if not self._make_room():
            self._refuse(sock, peer)
            return
        task = asyncio.get_running_loop().create_task(self._connect(sock, peer))
        self._opening.add(task)
        task.add_done_callback(self._opening.discard)

    def _accepted_tls(self, sock: socket.socket, peer: Any) -> None:
        if not self._make_room():
            self._refuse(sock, peer)
            return
        task = asyncio.get_running_loop().create_task(self._secure(sock, peer))
        self._shaking_hands[task] = None
        task.add_done_callback(self._shaking_hands.pop)

    async def _secure(self, sock: socket.socket, peer: Any) -> None:
        assert self._tls is not None
        try:
            secured = await self._tls.enter(sock, str(peer[0]))
        except RefusedArrival as refused:
            address = str(ListenAddress(*peer[:2]))
            _log.info(
                "TLS connection of HTTP refused", peer=address, reason=refused.reason, error=str(refused)
            )
            return
        handler = self._protocol()
        self._opened(handler, TlsTransport(secured, handler, peer), peer)

    async def _connect(self, sock: socket.socket, peer: Any) -> None:
        loop = asyncio.get_running_loop()
        try:
            transport, handler = await loop.connect_accepted_socket(self._protocol, sock)
        except OSError as error:
            _log.warning("an HTTP connection could not be accepted", error=str(error))
            sock.close()
            return
        self._opened(handler, transport, peer)

    def _protocol(self) -> ServedConnection:
        assert self._runner is not None
        server = self._runner.server
        assert server is not None
        # aiohttp has no public place for the class of connections.
        return ServedConnection(server, loop=asyncio.get_running_loop(), **server._kwargs)  # noqa: SLF001

    def _opened(self, handler: ServedConnection, transport: asyncio.Transport, peer: Any) -> None:
        # The protocol is notified when anything waits in the transport, and when all of it has left.
        transport.set_write_buffer_limits(high=0, low=0)
        if handler.transport is None:
            return  # it is over already
        address = str(ListenAddress(*peer[:2])) if isinstance(peer, tuple) else ""
        client = self._open[handler] = self._clients.opened(
            "http", address, end=transport.abort, buffered=transport.get_write_buffer_size
        )
        handler.lost = functools.partial(self._lost, handler, client)

    def _lost(self, handler: ServedConnection, client: Client) -> None:
        self._open.pop(handler, None)
        self._clients.closed(client)

    def _make_room(self) -> bool:
        """Close the connections that were used least recently until there is room for one more, if that can be."""
        shaking = [task for task in self._shaking_hands if not task.done()]
        if len(shaking) >= max(1, self._most // 2):  # they have been of no use yet
            shaking[0].cancel()
        while self._open and len(self._open) + len(self._opening) + len(shaking) >= self._most:
            handler = next((handler for handler in self._open if handler not in self._busy), None)
            if handler is None:
                return False
            self._open.pop(handler).end()
            _log.warning("an HTTP connection is closed to make room for another", connections=self._most)
        return True

    def _refuse(self, sock: socket.socket, peer: Any) -> None:
        sock.close()
        self._refused()
        address = str(ListenAddress(*peer[:2])) if isinstance(peer, tuple) else ""
        _log.warning("an HTTP connection has no place", peer=address, connections=self._most)

    @web.middleware
    async def _in_use(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        connection = request.protocol
        assert isinstance(connection, ServedConnection)
        if (opened := self._open.pop(connection, None)) is not None:
            self._open[connection] = opened
            assert isinstance(request, ServedRequest)
            request.connection = opened
        self._busy.add(connection)
        self._nothing_busy.clear()
        try:
            return await handler(request)
        finally:
            self._busy.discard(connection)
            if not self._busy:
                self._nothing_busy.set()

    @web.middleware
    async def _errors(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        """Whatever is raised for a request, as an error in the form of its API, or of the pages."""
        try:
            return await handler(request)
        except Exception as error:  # noqa: BLE001 - whatever a metric raises is not the end of the connection
            for api in self._apis:
                if request.path.startswith(api.prefix):
                    return api.failure(error, request)
            problem = problem_of(error, request)
            return with_headers(json_response(problem.status, {"error": problem.detail}), problem)


def _reason(error: OSError) -> str:
    """The reason without the address, which asyncio puts into its message in a form of its own."""
    if isinstance(error, socket.gaierror) or not error.errno:
        return error.strerror or str(error)
    return os.strerror(error.errno).lower()
