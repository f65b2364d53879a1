"""A whole broker sends its spans to a collector, which is a small one of the test's own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from broker_core.broker import Broker
from broker_core.client import LookupSession
from broker_core.settings import Settings


class Collector:
    """Takes spans by OTLP over HTTP."""

    def __init__(self) -> None:
        self.spans: list[Any] = []
        self.services: set[str] = set()

    async def _take(self, request: web.Request) -> web.Response:
        sent = ExportTraceServiceRequest.FromString(await request.read())
        for resource in sent.resource_spans:
            self.services |= {
                pair.value.string_value for pair in resource.resource.attributes if pair.key == "service.name"
            }
            for scope in resource.scope_spans:
                self.spans += scope.spans
        return web.Response(content_type="application/x-protobuf")

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[str]:
        application = web.Application()
        application.router.add_post("/v1/traces", self._take)
        runner = web.AppRunner(application)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        try:
            host, port = runner.addresses[0][:2]
            yield f"http://{host}:{port}"
        finally:
            await runner.cleanup()


def settings(folder: Path, endpoint: str) -> Settings:
    return Settings.model_validate(
        {
            "pulsar": {"listen": "127.0.0.1:0"},
            "http": {"listen": "127.0.0.1:0"},
            "catalog": {"path": folder / "topics.sqlite"},
            "tracing": {"endpoint": endpoint},
        }
    )


async def test_listings_of_both_transports_arrive_below_the_spans_of_their_clients(tmp_path: Path) -> None:
    collector = Collector()
    trace_id, span_id = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
    async with collector.listening() as endpoint, Broker(settings(tmp_path, endpoint)) as broker:
        host, port = broker.pulsar_address
        async with LookupSession(f"pulsar://{host}:{port}") as session:
            await session.get_topics("public/default", properties={"secret": "hunter2"})
        assert broker.http_address is not None
        host, port = broker.http_address
        url = f"http://{host}:{port}/v1/namespaces/public/default/topics"
        traceparent = {"traceparent": f"00-{trace_id}-{span_id}-01"}
        async with aiohttp.ClientSession() as http, http.get(url, headers=traceparent) as response:
            assert response.status == 200
    assert collector.services == {"broker-core"}
    listings = {
        pair.value.string_value: span
        for span in collector.spans
        if span.name == "listing"
        for pair in span.attributes
        if pair.key == "broker_core.transport"
    }
    assert set(listings) == {"pulsar", "http"}
    assert listings["http"].trace_id.hex() == trace_id
    assert listings["http"].parent_span_id.hex() == span_id
    assert listings["pulsar"].parent_span_id == b""
    assert "hunter2" not in str(collector.spans)


async def test_a_collector_that_is_not_there_keeps_nobody_waiting(tmp_path: Path) -> None:
    async with Broker(settings(tmp_path, "http://127.0.0.1:1")) as broker:
        host, port = broker.pulsar_address
        async with LookupSession(f"pulsar://{host}:{port}") as session, asyncio.timeout(30):
            for _ in range(50):
                await session.get_topics("public/default")
