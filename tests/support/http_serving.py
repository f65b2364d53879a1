"""An HTTP server on a free port, and what it says."""

from __future__ import annotations

import asyncio
from typing import Any

from prometheus_client import CollectorRegistry

from broker_core.metrics.frequent_questions import QuestionCounter
from broker_core.servers.http import Endpoints, HttpServer, Readiness

__all__ = ["Served"]


class Served:
    """A server on a free port, and what it says."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.readiness = Readiness.READY
        self.questions = QuestionCounter()
        self.plugins: list[dict[str, Any]] = []
        endpoints = Endpoints(
            self.registry,
            lambda: self.readiness,
            questions=self.questions.most_asked,
            plugins=lambda: self.plugins,
        )
        self.server = HttpServer(endpoints)

    @property
    def url(self) -> str:
        host, port = self.server.address
        return f"http://{host}:{port}"

    async def raw(self, request: bytes) -> bytes:
        """Everything that is answered to these bytes, to the end of the connection."""
        reader, writer = await asyncio.open_connection(*self.server.address)
        writer.write(request)
        answer = await reader.read()
        writer.close()
        await writer.wait_closed()
        return answer
