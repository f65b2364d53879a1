"""One HTTP connection and its requests, with bounds on the time and the size of a request's head.

aiohttp bounds each line of a head. Here the whole head is bounded, in bytes and in time, so that a client that sends it
byte by byte, or in many lines, does not hold memory. Bytes that are no HTTP are answered, but never logged: they may be
credentials, and anybody may send them.

This is the only module that uses what is private in aiohttp: it has no public place for the class of connections, nor
for that of requests, and its hook ``on_response_prepare`` misses bytes that are no request at all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import structlog
from aiohttp import hdrs, web
from aiohttp.http_exceptions import HttpProcessingError

from broker_core.access import Asker, Client, Clients, Peer
from broker_core.servers.admission import ConnectionPlace

__all__ = [
    "MakeConnection",
    "ServedConnection",
    "abort",
    "asker_of",
    "client_of",
    "connections_of",
    "peer_of",
]

_log = structlog.get_logger(__name__)

#: Bytes of a head that is not complete.
_MOST_BYTES: Final = 96 * 1024
#: Seconds from its first byte to its last one.
_TIMEOUT: Final = 15.0

_NOBODY: Final = Peer("", "http")

MakeConnection = Callable[[Peer, ConnectionPlace], "ServedConnection"]


class ServedConnection(web.RequestHandler):
    """The protocol of one connection of ``peer``, which is one of ``clients`` and has a ``place`` while it is open.

    ``closed`` is called with a label of the metrics when the server closes it. ``not_http`` makes the answer to bytes
    that are none.
    """

    __slots__ = (
        "_clients",
        "_closed",
        "_head_bytes",
        "_head_timer",
        "_not_http",
        "busy",
        "client",
        "peer",
        "place",
    )

    def __init__(
        self,
        server: web.Server,
        peer: Peer,
        place: ConnectionPlace,
        *,
        clients: Clients,
        closed: Callable[[str], object],
        not_http: Callable[[], web.Response],
    ) -> None:
        super().__init__(server, loop=asyncio.get_running_loop(), **server._kwargs)  # noqa: SLF001
        self.peer = peer
        self.place = place
        #: Whether a request is being answered.
        self.busy = False
        self.client: Client
        self._clients = clients
        self._closed = closed
        self._not_http = not_http
        self._head_bytes = 0
        self._head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        assert isinstance(transport, asyncio.Transport)
        # The protocol is notified when anything waits in the transport, and when all of it has left.
        transport.set_write_buffer_limits(high=0, low=0)
        self.client = self._clients.opened(
            "http", self.peer.remote_address, end=transport.abort, buffered=transport.get_write_buffer_size
        )
        self.place.idle, self.place.end = self._idle, self._make_place

    def data_received(self, data: bytes) -> None:
        # While a request is answered, its body may come, or waiting requests, which aiohttp bounds.
        awaited = self._waiter is not None or self._request_count == 0
        before = self._request_count
        super().data_received(data)
        if not awaited or self._request_count != before:
            self._end_head()
            return
        self._head_bytes += len(data)
        if self._head_bytes > _MOST_BYTES:
            self._refuse("431 Request Header Fields Too Large")
        elif self._head_timer is None and data:
            self._head_timer = self._loop.call_later(_TIMEOUT, self._refuse, "408 Request Timeout")

    def connection_lost(self, exc: BaseException | None) -> None:
        self._end_head()
        super().connection_lost(exc)
        self.place.give_back()
        self._clients.closed(self.client)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        if not isinstance(exc, HttpProcessingError):
            return super().handle_error(request, status, exc, message)
        _log.debug("bytes are no HTTP", peer=self.peer.remote_address, error=type(exc).__name__)
        response = self._not_http()
        response.headers["Cache-Control"] = "no-store"
        response.force_close()
        return response

    def _idle(self) -> float | None:
        """Seconds since its last request, or since it was opened; ``None`` while it is answered."""
        if self.busy or self.client.buffered():
            return None
        return self.client.idle

    def _make_place(self) -> None:
        """Close an idle connection, because another one needs its place."""
        _log.info("idle connection closed to make room for another", peer=self.peer.remote_address)
        self._closed("places")
        if self.transport is not None:
            self.transport.abort()

    def _end_head(self) -> None:
        self._head_bytes = 0
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _refuse(self, status: str) -> None:
        self._end_head()
        if self.transport is not None:
            self.transport.write(
                f"HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode()
            )
        self.force_close()


class _ServedRequest(web.Request):
    """Request with a response that names no version of Python or aiohttp and by default is kept by no cache.

    Pages of other sites cannot include the response as a script or an image.
    """

    def __init__(self, message: Any, *arguments: Any, **options: Any) -> None:
        if not message.headers.get(hdrs.EXPECT, "").isascii():
            # aiohttp quotes it in the error 417 of paths that are not served, and cannot encode bytes that are no
            # UTF-8.
            headers = message.headers.copy()
            headers[hdrs.EXPECT] = "unknown"
            message = message._replace(headers=type(message.headers)(headers))
        super().__init__(message, *arguments, **options)

    async def _prepare_hook(self, resp: web.StreamResponse) -> None:
        await super()._prepare_hook(resp)
        resp.headers.popall(hdrs.SERVER, None)
        resp.headers.setdefault(hdrs.CACHE_CONTROL, "no-store")
        resp.headers.setdefault("X-Content-Type-Options", "nosniff")
        resp.headers.setdefault("Cross-Origin-Resource-Policy", "same-origin")


def connections_of(
    runner: web.AppRunner,
    *,
    clients: Clients,
    closed: Callable[[str], object],
    not_http: Callable[[], web.Response],
) -> MakeConnection:
    """The maker of the connections of a runner that is set up (:class:`ServedConnection`)."""
    server = runner.server
    assert server is not None
    server.request_factory = partial(runner.app._make_request, _cls=_ServedRequest)  # noqa: SLF001
    return partial(ServedConnection, server, clients=clients, closed=closed, not_http=not_http)


def peer_of(request: web.BaseRequest) -> Peer:
    """The peer of the connection that a request came by, as the transport knows it."""
    connection = request.protocol
    return connection.peer if isinstance(connection, ServedConnection) else _NOBODY


def abort(request: web.BaseRequest) -> None:
    """End the connection of a request at once, if it is there still."""
    if request.transport is not None:
        request.transport.abort()


def client_of(request: web.BaseRequest) -> Client:
    """The client whose connection a request came by."""
    connection = request.protocol
    return connection.client if isinstance(connection, ServedConnection) else Client("http", "")


def asker_of(request: web.Request, transport: str = "http") -> Asker:
    """The asker of a request before any authentication: a client without a role."""
    return Asker(
        remote_address=peer_of(request).remote_address,
        client_version=request.headers.get(hdrs.USER_AGENT, "")[:256],
        transport=transport,
        connection=client_of(request),
    )
