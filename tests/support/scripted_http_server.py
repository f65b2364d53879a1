"""An HTTP server that answers what a test tells it, over a real socket."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Self

from aiohttp import web

__all__ = ["ScriptedHttpServer"]


class ScriptedHttpServer:
    """``async with ScriptedHttpServer(answer) as server``: ``answer`` is called for each request."""

    def __init__(
        self,
        answer: Callable[[web.Request], Awaitable[web.StreamResponse]],
        *,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.answer = answer
        self.tls = tls
        self.requests: list[web.Request] = []
        #: Requests whose client went away before the answer.
        self.cancelled = 0
        self.port = 0
        self._runner: web.ServerRunner | None = None

    @property
    def url(self) -> str:
        return f"http{'s' if self.tls is not None else ''}://127.0.0.1:{self.port}"

    @property
    def paths(self) -> list[str]:
        return [request.path_qs for request in self.requests]

    async def start(self, port: int = 0) -> None:
        server = web.Server(self._serve, handler_cancellation=True)
        self._runner = web.ServerRunner(server, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", port, ssl_context=self.tls)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        assert isinstance(request, web.BaseRequest)
        self.requests.append(request)  # type: ignore[arg-type]
        try:
            return await self.answer(request)  # type: ignore[arg-type]
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
