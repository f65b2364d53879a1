"""The HTTP server: its connections, and the bounds of what it reads of them.

It runs on the event loop of the broker, so it is bounded in what it reads, and a peer that sends nothing is closed. It
has a bounded number of connections: one more closes the one that was idle for the longest time, never one that is being
answered. Requests of an API have fewer places than there are connections, so that health is answered however many
requests run, and however many clients just stay.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from ipaddress import IPv4Network, IPv6Network
from typing import Final

from aiohttp import web

from broker_core.access import Clients
from broker_core.concurrency import ended_within
from broker_core.errors import Cause
from broker_core.metrics import Metrics
from broker_core.servers.admission import ConnectionLimits
from broker_core.servers.arrival import Arrivals, TlsEntrance
from broker_core.servers.http.api import HttpApi
from broker_core.servers.http.api.json_object import json_response
from broker_core.servers.http.api.problem_details import Problem, problem_of, problem_response, with_headers
from broker_core.servers.http.operator_endpoints import Endpoints
from broker_core.servers.http.served_connection import MakeConnection, ServedConnection, connections_of
from broker_core.settings import LimitsSettings

__all__ = ["HttpServer"]

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


class HttpServer:
    """Serves the endpoints from :meth:`start` to :meth:`close`. ``connections`` is how many there may be in all.

    ``of_plugins`` are the routes of plugins' sites. ``tls`` is for :meth:`start_tls`. Proxies in the networks
    ``haproxy_from`` give the addresses of clients. ``clients`` are the clients of all servers of the broker. ``drain``
    is called when requests of an API are to be taken no more.
    """

    def __init__(
        self,
        endpoints: Endpoints,
        *,
        apis: Sequence[HttpApi] = (),
        of_plugins: Sequence[web.RouteDef] = (),
        connections: int = _CONNECTIONS,
        per_address: int = 0,
        haproxy_from: Iterable[IPv4Network | IPv6Network] = (),
        tls: TlsEntrance | None = None,
        metrics: Metrics | None = None,
        clients: Clients | None = None,
        drain: Callable[[], None] = lambda: None,
    ) -> None:
        self._endpoints = endpoints
        self._apis = apis
        self._of_plugins = of_plugins
        self._tls = tls
        self._metrics = Metrics() if metrics is None else metrics
        self._clients = Clients() if clients is None else clients
        self._drain = drain
        self._arrivals = Arrivals(
            "http",
            # A client of HTTP opens another connection by itself, and asks again: each that is idle gives way.
            ConnectionLimits(connections, per_address, idle=0.0, full="http"),
            self._metrics,
            haproxy_from=haproxy_from,
            # A new connection must be heard before so many others have come that its turn is over.
            at_once=1,
        )
        self._runner: web.AppRunner | None = None
        self._connection: MakeConnection
        self._busy = 0
        self._nothing_busy = asyncio.Event()
        self._nothing_busy.set()

    async def start(self, host: str, port: int) -> tuple[str, int]:
        """Listen; port 0 is a free one. Returns the address. Raises :exc:`OSError` if it is not free."""
        await self._set_up()
        return await self._arrivals.listen(host, port, self._connection)

    async def start_tls(self, host: str, port: int) -> tuple[str, int]:
        """Listen for clients over TLS besides; the server has been started."""
        assert self._tls is not None
        return await self._arrivals.listen(host, port, self._connection, self._tls)

    async def start_on(self, sock: socket.socket) -> None:
        """Serve a unix socket that listens already; it is closed by :meth:`close`."""
        await self._set_up()
        self._arrivals.listen_on(sock, self._connection)

    def limit(self, limits: LimitsSettings, _connections: int | None) -> None:
        """Replace the limits; how many clients there may be is a setting of its own. Connected clients stay."""
        self._arrivals.places.per_address = limits.connections_per_address

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
        self._connection = connections_of(
            runner, clients=self._clients, closed=self._metrics.connection_closed, not_http=_not_http
        )
        self._runner = runner

    @property
    def connections(self) -> int:
        """The number of open connections."""
        return self._arrivals.places.taken

    async def stop(self, drain: float) -> None:
        """Take no more requests of an API, and let requests end for up to ``drain`` seconds.

        Health is answered until :meth:`close`.
        """
        self._drain()
        await ended_within(drain, self._nothing_busy.wait())

    async def close(self) -> None:
        """Close the port and all connections; requests under way have two seconds. May be called again."""
        await self._arrivals.close()
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()

    @web.middleware
    async def _in_use(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        connection = request.protocol
        assert isinstance(connection, ServedConnection)
        connection.place.used()
        connection.busy = True
        self._busy += 1
        self._nothing_busy.clear()
        try:
            return await handler(request)
        finally:
            connection.busy = False
            self._busy -= 1
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


def _not_http() -> web.Response:
    return problem_response(Problem(400, "these bytes are no request of HTTP/1.1", Cause.BAD_REQUEST))
