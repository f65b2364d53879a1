"""An HTTP server on a free port, and what it says."""

from __future__ import annotations

import asyncio
from typing import Any

from prometheus_client import CollectorRegistry

from broker_core.pipeline.reports.finished_listings import QuestionCounter
from broker_core.servers.http import Endpoints, HttpServer, Readiness

__all__ = ["Served"]


class Served:
    """A server on a free port, and what it says."""

    def __init__(self, **options: Any) -> None:
        """``options`` are those of :class:`~broker_core.servers.http.HttpServer`."""
        self.registry = CollectorRegistry()
        self.readiness = Readiness.READY
        self.questions = QuestionCounter()
        self.plugins: list[dict[str, Any]] = []
        endpoints = Endpoints(
            self.registry,
            lambda: self.readiness,
            questions=self.questions.most_frequent,
            plugins=lambda: self.plugins,
        )
        self.server = HttpServer(endpoints, **options)
        self.address: tuple[str, int]

    async def start(self) -> None:
        """Listen on a free port."""
        self.address = await self.server.start("127.0.0.1", 0)

    @property
    def url(self) -> str:
        host, port = self.address
        return f"http://{host}:{port}"

    async def raw(self, request: bytes) -> bytes:
        """Everything that is answered to these bytes, to the end of the connection."""
        reader, writer = await asyncio.open_connection(*self.address)
        writer.write(request)
        answer = await reader.read()
        writer.close()
        await writer.wait_closed()
        return answer
