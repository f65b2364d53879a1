"""What HTTP serves: ``/metrics``, ``/questions``, ``/plugins``, ``/-/live`` and ``/-/ready``."""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from aiohttp import hdrs, web
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from broker_core.access.asker import Asker
from broker_core.metrics.frequent_questions import QuestionCount, question_lines
from broker_core.quantities import ListenAddress
from broker_core.servers.http.json_responses import json_response

__all__ = ["Endpoints", "Readiness"]


class Readiness(enum.Enum):
    """What ``/-/ready`` says; only ``ready`` is a 200."""

    STARTING = "starting"
    READY = "ready"
    DRAINING = "draining"


class Endpoints:
    """Answers from one registry of metrics and one readiness, on the event loop: what is answered must be quick.

    ``questions`` gives the most frequent questions up to a number (``None``: all); without it they are not
    served. ``allowed`` filters them by what the client may see. ``plugins`` gives the state of each plugin, in plain
    values. All are called on the event loop.
    """

    def __init__(
        self,
        registry: CollectorRegistry,
        readiness: Callable[[], Readiness],
        *,
        questions: Callable[[int | None], list[QuestionCount]] | None = None,
        allowed: Callable[[Sequence[QuestionCount], Asker], Awaitable[list[QuestionCount]]] | None = None,
        plugins: Callable[[], Sequence[dict[str, Any]]] = list,
    ) -> None:
        self._registry = registry
        self._readiness = readiness
        self._questions = questions
        self._allowed = allowed
        self._plugins = plugins

    def routes(self) -> list[web.RouteDef]:
        """The path of each endpoint."""
        return [
            web.get("/metrics", self._metrics),
            web.get("/questions", self._asked),
            web.get("/plugins", self._described),
            web.get("/-/live", self._live),
            web.get("/-/ready", self._ready),
        ]

    async def _metrics(self, request: web.Request) -> web.Response:
        encode, content_type = choose_encoder(request.headers.get(hdrs.ACCEPT, ""))
        return web.Response(body=encode(self._registry), headers={hdrs.CONTENT_TYPE: content_type})

    async def _asked(self, request: web.Request) -> web.Response:
        """The most frequent questions as JSON lines, ``?limit=`` of them."""
        if self._questions is None:
            return json_response(
                403,
                {
                    "error": "/questions is off: set questions = true in the table [http] of the settings to show it"
                },
            )
        limit = request.query.get("limit")
        if limit is not None and not (limit.isascii() and limit.isdigit() and len(limit) < 10):
            return json_response(
                400, {"error": "limit is a number of questions, such as /questions?limit=100"}
            )
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
        return json_response(200, {"plugins": self._plugins()})

    async def _live(self, _request: web.Request) -> web.Response:
        return json_response(200, {"status": "live"})

    async def _ready(self, _request: web.Request) -> web.Response:
        readiness = self._readiness()
        return json_response(200 if readiness is Readiness.READY else 503, {"status": readiness.value})


def _asker(request: web.Request) -> Asker:
    peer = request.transport.get_extra_info("peername") if request.transport is not None else None
    return Asker(
        remote_address=str(ListenAddress(*peer[:2])) if isinstance(peer, tuple) else "",
        client_version=request.headers.get(hdrs.USER_AGENT, "")[:256],
        transport="http",
    )
