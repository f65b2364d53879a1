"""A broker with its HTTP API on a free port, for tests: a catalogue of its own, and a client of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from broker_core.broker import Broker
from broker_core.catalog import SqliteCatalog
from broker_core.names import TopicName
from broker_core.settings import Settings
from tests.support.eventually import eventually

__all__ = ["NAMESPACE", "TOPICS", "ApiServed", "Said", "api_served", "catalog_of"]

#: What is in the catalogue where a test says nothing else: partitions and properties by full name.
TOPICS: Mapping[str, tuple[int, Mapping[str, str]]] = {
    "persistent://public/default/orders": (2, {"region": "eu"}),
    "persistent://public/default/bills": (0, {"region": "us"}),
    "non-persistent://public/default/ticks": (0, {}),
}
NAMESPACE = "/v1/namespaces/public/default"


@dataclass
class Said:
    """A response, read to its end."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    json: Any


class ApiServed:
    """A running broker, ``session`` for any client, and :meth:`ask` for most questions."""

    def __init__(self, broker: Broker, session: aiohttp.ClientSession) -> None:
        self.broker = broker
        self.session = session
        assert broker.http_address is not None
        host, port = broker.http_address
        self.url = f"http://{host}:{port}"

    async def ask(self, path: str, method: str = "GET", **options: Any) -> Said:
        """Ask ``path``; ``options`` are those of :meth:`aiohttp.ClientSession.request`."""
        async with self.session.request(method, self.url + path, **options) as response:
            body = await response.read()
            said = (
                await response.json(content_type=None)
                if response.content_type.endswith(("/json", "+json")) and body
                else None
            )
            return Said(response.status, response.headers, body, said)

    async def raw(self, request: bytes) -> bytes:
        """Everything that is answered to these bytes, to the end of the connection."""
        assert self.broker.http_address is not None
        reader, writer = await asyncio.open_connection(*self.broker.http_address)
        writer.write(request)
        answer = await reader.read()
        writer.close()
        await writer.wait_closed()
        return answer

    def sample(self, name: str, **labels: str) -> float:
        """The value of a metric."""
        registry = self.broker.pipeline.metrics.registry
        return registry.get_sample_value(f"broker_core_{name}", labels) or 0.0


@asynccontextmanager
async def api_served(
    folder: Path,
    *,
    topics: Mapping[str, tuple[int, Mapping[str, str]]] = TOPICS,
    plugins: Mapping[str, object] | None = None,
    plugin_settings: Mapping[str, Any] | None = None,
    **tables: Mapping[str, Any],
) -> AsyncIterator[ApiServed]:
    """A broker with these topics; ``tables`` are those of the settings. At the end all permits are free again."""
    path = folder / "topics.sqlite"
    with SqliteCatalog(path) as catalog:
        for name, (partitions, properties) in topics.items():
            catalog.create(TopicName.parse(name), partitions=partitions, properties=properties)
    settings = Settings.model_validate(
        {
            "pulsar": {"listen": "127.0.0.1:0"},
            "catalog": {"path": path, "property_keys": ["region"]} | dict(tables.pop("catalog", {})),
            "http": {"listen": "127.0.0.1:0"} | dict(tables.pop("http", {})),
            "plugins": dict(plugin_settings or {}),
            **tables,
        }
    )
    async with Broker(settings, plugins=plugins) as broker, aiohttp.ClientSession() as session:
        yield ApiServed(broker, session)
        permits = broker.pipeline.permits
        await eventually(lambda: permits.heap.acquired == 0)
        await eventually(lambda: permits.direct.acquired == 0)


def catalog_of(served: ApiServed) -> SqliteCatalog:
    """The embedded catalogue of a server."""
    assert served.broker.catalog is not None
    return served.broker.catalog
