"""The HTTP server: ``/metrics``, ``/questions``, ``/plugins``, ``/-/live`` and ``/-/ready``, else a 404 in JSON.

It runs on the event loop of the broker, so what it answers must be quick, and it is bounded in what it reads: no
request has a body, and a peer that sends nothing is closed. It has a bounded number of connections: one more closes the
one that was of no use for the longest time, so that health is answered however many others just stay.
"""

from __future__ import annotations

import asyncio
import enum
import functools
import json
import os
import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

import structlog
from aiohttp import hdrs, web
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from broker_core.access.asker import Asker
from broker_core.errors import BrokerCoreError, ListingFailed
from broker_core.metrics.frequent_questions import QuestionCount, question_lines
from broker_core.quantities import ListenAddress
from broker_core.servers.admission import Acceptor
from broker_core.servers.http.status_codes import STATUS_CODES

__all__ = ["HttpListenError", "HttpServer", "Readiness"]

_log = structlog.get_logger(__name__)

_MAX_LINE_BYTES: Final = 4096
_MAX_HEADERS: Final = 64
_MAX_BODY_BYTES: Final = 1024
#: Seconds that an idle connection stays; longer than the usual interval of a scrape.
_IDLE_TIMEOUT: Final = 75.0
#: Connections of it, where nothing else is said.
_CONNECTIONS: Final = 32
#: Seconds that a request under way may take when the server stops.
_STOP_TIMEOUT: Final = 2.0


class Readiness(enum.Enum):
    """What ``/-/ready`` says; only ``ready`` is a 200."""

    STARTING = "starting"
    READY = "ready"
    DRAINING = "draining"


class HttpListenError(BrokerCoreError):
    """The address of ``[http] listen`` cannot be listened on; the message names it."""


class HttpServer:
    """Serves one registry of metrics and one readiness, from :meth:`start` to :meth:`stop`.

    ``questions`` gives the most frequent questions up to a number (``None``: all); without it they are nobody's
    business. ``allowed`` leaves of them what whoever asks may see. ``plugins`` gives what is known of each plugin, in
    plain values. All are called on the event loop. ``connections`` is how many there may be.
    """

    def __init__(
        self,
        registry: CollectorRegistry,
        readiness: Callable[[], Readiness],
        *,
        questions: Callable[[int | None], list[QuestionCount]] | None = None,
        allowed: Callable[[Sequence[QuestionCount], Asker], Awaitable[list[QuestionCount]]] | None = None,
        plugins: Callable[[], Sequence[dict[str, Any]]] = list,
        connections: int = _CONNECTIONS,
    ) -> None:
        self._registry = registry
        self._readiness = readiness
        self._questions = questions
        self._allowed = allowed
        self._plugins = plugins
        self._runner: web.AppRunner | None = None
        self._most = connections
        # One at a time: a new connection must be heard before so many others have come that its turn is over.
        self._acceptor = Acceptor(self._accepted, at_once=1)
        self._opening: set[asyncio.Task[None]] = set()
        self._open: dict[web.RequestHandler, asyncio.Transport] = {}  # the one used last at the end
        self._busy: set[web.RequestHandler] = set()
        self._address: tuple[str, int] | None = None

    async def start(self, host: str, port: int) -> None:
        """Listen; port 0 is a free one. Raises :exc:`HttpListenError`."""
        app = web.Application(middlewares=[self._in_use, _errors_in_json], client_max_size=_MAX_BODY_BYTES)
        app.router.add_get("/metrics", self._metrics)
        app.router.add_get("/questions", self._asked)
        app.router.add_get("/plugins", self._described)
        app.router.add_get("/-/live", self._live)
        app.router.add_get("/-/ready", self._ready)
        runner = web.AppRunner(
            app,
            handle_signals=False,
            access_log=None,
            keepalive_timeout=_IDLE_TIMEOUT,
            shutdown_timeout=_STOP_TIMEOUT,
            max_line_size=_MAX_LINE_BYTES,
            max_field_size=_MAX_LINE_BYTES,
            max_headers=_MAX_HEADERS,
        )
        await runner.setup()
        assert runner.server is not None
        # aiohttp has no public place for a request class; on_response_prepare misses what is no request at all.
        make_request = functools.partial(app._make_request, _cls=_QuietRequest)  # noqa: SLF001
        runner.server.request_factory = make_request
        self._runner = runner
        try:
            self._address = await self._acceptor.listen(host, port)
        except OSError as error:
            await self.stop()
            raise HttpListenError(
                f"http.listen: cannot listen on {host} port {port}: {_reason(error)}"
            ) from error

    @property
    def address(self) -> tuple[str, int]:
        """The host and the port that is listened on."""
        if self._address is None:
            raise RuntimeError("the HTTP server is not listening")
        return self._address

    async def stop(self) -> None:
        """Close the port and all connections; requests under way have two seconds. May be called again."""
        self._acceptor.close()
        if self._opening:
            await asyncio.wait(self._opening)
        runner, self._runner, self._address = self._runner, None, None
        if runner is not None:
            await runner.cleanup()
        self._open.clear()

    def _accepted(self, sock: socket.socket, _peer: object) -> None:
        self._make_room()
        task = asyncio.get_running_loop().create_task(self._connect(sock))
        self._opening.add(task)
        task.add_done_callback(self._opening.discard)

    async def _connect(self, sock: socket.socket) -> None:
        assert self._runner is not None
        assert self._runner.server is not None
        loop = asyncio.get_running_loop()
        try:
            transport, handler = await loop.connect_accepted_socket(self._runner.server, sock)
        except OSError as error:
            _log.warning("an HTTP connection could not be accepted", error=str(error))
            sock.close()
            return
        self._open[handler] = transport

    def _make_room(self) -> None:
        """Close the connections that were used least recently until there is room for one more."""
        self._open = {handler: each for handler, each in self._open.items() if handler.transport is not None}
        while self._open and len(self._open) + len(self._opening) >= self._most:
            idle = (handler for handler in self._open if handler not in self._busy)
            handler = next(idle, next(iter(self._open)))
            self._open.pop(handler).abort()
            _log.warning("an HTTP connection is closed to make room for another", connections=self._most)

    @web.middleware
    async def _in_use(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        connection = request.protocol
        if (transport := self._open.pop(connection, None)) is not None:
            self._open[connection] = transport
        self._busy.add(connection)
        try:
            return await handler(request)
        finally:
            self._busy.discard(connection)

    async def _metrics(self, request: web.Request) -> web.Response:
        encode, content_type = choose_encoder(request.headers.get(hdrs.ACCEPT, ""))
        return web.Response(body=encode(self._registry), headers={hdrs.CONTENT_TYPE: content_type})

    async def _asked(self, request: web.Request) -> web.Response:
        """The most frequent questions as JSON lines, ``?limit=`` of them."""
        if self._questions is None:
            return _json(
                403,
                {
                    "error": "/questions is off: set questions = true in the table [http] of the settings to show it"
                },
            )
        limit = request.query.get("limit")
        if limit is not None and not (limit.isascii() and limit.isdigit() and len(limit) < 10):
            return _json(400, {"error": "limit is a number of questions, such as /questions?limit=100"})
        most = None if limit is None else int(limit)
        if self._allowed is None:
            found = self._questions(most)
        else:
            found = (await self._allowed(self._questions(None), _asker(request)))[:most]
        # Thousands of them take too long for the event loop.
        body = await asyncio.to_thread(lambda: "".join(question_lines(found)).encode())
        return web.Response(body=body, content_type="application/x-ndjson", charset="utf-8")

    async def _described(self, _request: web.Request) -> web.Response:
        """The plugins in the order of the chain."""
        return _json(200, {"plugins": self._plugins()})

    async def _live(self, _request: web.Request) -> web.Response:
        return _json(200, {"status": "live"})

    async def _ready(self, _request: web.Request) -> web.Response:
        readiness = self._readiness()
        return _json(200 if readiness is Readiness.READY else 503, {"status": readiness.value})


class _QuietRequest(web.Request):
    """Its response does not tell the versions of Python and aiohttp, and is not kept by caches."""

    async def _prepare_hook(self, resp: web.StreamResponse) -> None:
        await super()._prepare_hook(resp)
        resp.headers.popall(hdrs.SERVER, None)
        resp.headers.setdefault(hdrs.CACHE_CONTROL, "no-store")


@web.middleware
async def _errors_in_json(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    try:
        return await handler(request)
    except web.HTTPNotFound:
        return _json(404, {"error": f"there is nothing at {request.path}"})
    except web.HTTPMethodNotAllowed as error:
        allowed = ", ".join(sorted(error.allowed_methods))
        response = _json(405, {"error": f"{request.path} does not take {request.method}, only {allowed}"})
        response.headers[hdrs.ALLOW] = allowed
        return response
    except web.HTTPException as error:
        return _json(error.status, {"error": error.reason})
    except ListingFailed as failure:
        return _json(STATUS_CODES[failure.cause], {"error": failure.message})
    except Exception:  # noqa: BLE001 - whatever a metric raises, it is our fault and not the end of the connection
        _log.exception("an HTTP request failed", path=request.path)
        return _json(500, {"error": "internal error; the log says more"})


def _asker(request: web.Request) -> Asker:
    peer = request.transport.get_extra_info("peername") if request.transport is not None else None
    return Asker(
        remote_address=str(ListenAddress(*peer[:2])) if isinstance(peer, tuple) else "",
        client_version=request.headers.get(hdrs.USER_AGENT, "")[:256],
        transport="http",
    )


def _json(status: int, content: dict[str, Any]) -> web.Response:
    return web.Response(status=status, text=json.dumps(content) + "\n", content_type="application/json")


def _reason(error: OSError) -> str:
    """The reason without the address, which asyncio puts into its message in a form of its own."""
    if isinstance(error, socket.gaierror) or not error.errno:
        return error.strerror or str(error)
    return os.strerror(error.errno).lower()
