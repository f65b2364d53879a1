"""A whole server in the process of a test: a catalogue in a folder that goes away, a free port, a client of it."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from broker_core.broker import Broker
from broker_core.catalog import SqliteCatalog
from broker_core.client import LookupClient, TopicsAnswer
from broker_core.names import Mode, TopicName
from broker_core.settings import Settings

__all__ = ["Server", "serve"]


class Server:
    """A running broker with a client of it; :func:`serve` makes one."""

    def __init__(self, broker: Broker, client: LookupClient, catalog: SqliteCatalog) -> None:
        self.broker = broker
        self.client = client
        self._catalog = catalog

    @property
    def url(self) -> str:
        """The service URL for clients."""
        return str(self.client.service_url)

    async def list(
        self,
        namespace: str,
        *,
        pattern: str | None = None,
        mode: Mode = Mode.PERSISTENT,
        properties: Mapping[str, str] | None = None,
        topics_hash: str | None = None,
    ) -> TopicsAnswer:
        """Ask over the protocol: ``topics`` (full names), ``filtered``, ``topics_hash`` and ``changed`` of the answer.

        Raises :exc:`~broker_core.client.ServerRefused` with the ``code`` and the ``message`` that a client gets.
        """
        return await self.client.get_topics(
            namespace, mode, pattern=pattern, topics_hash=topics_hash, properties=properties
        )

    async def create(
        self, topic: str, *, partitions: int = 0, properties: Mapping[str, str] | None = None
    ) -> None:
        """Add a topic (full name) to the catalogue, which the next listing sees."""
        name = TopicName.parse(topic)
        await asyncio.to_thread(self._catalog.create, name, partitions=partitions, properties=properties)

    async def delete(self, topic: str) -> None:
        """Remove a topic from the catalogue, which the next listing sees."""
        await asyncio.to_thread(self._catalog.delete, TopicName.parse(topic))


@asynccontextmanager
async def serve(
    plugins: Mapping[str, object] | None = None,
    *,
    topics: Iterable[str] | Mapping[str, Mapping[str, str]] = (),
    settings: Mapping[str, Mapping[str, Any]] | None = None,
) -> AsyncIterator[Server]:
    """Serve ``plugins`` (name -> module or instance, in the order of the chain) on a free port of the loopback.

    ``topics`` are full names in the catalogue, which answers where no plugin does; a mapping gives each its properties.
    ``settings`` are the tables of a settings file: ``{"plugins": {"mine": {"deadline": "1s"}}}``. The environment and
    files are not read, and installed plugins are off unless ``settings`` enables them.
    """
    plugins = dict(plugins or {})
    with tempfile.TemporaryDirectory(prefix="broker-core-testing-") as folder:
        tables = _tables(settings or {}, list(plugins), Path(folder))
        path = Path(tables["catalog"]["path"])
        catalog = await asyncio.to_thread(_filled, path, topics)
        try:
            async with Broker(Settings(**tables), plugins=plugins) as broker:
                host, port = broker.pulsar_address
                async with LookupClient(f"pulsar://{host}:{port}") as client:
                    yield Server(broker, client, catalog)
        finally:
            await asyncio.to_thread(catalog.close)


def _tables(settings: Mapping[str, Mapping[str, Any]], plugins: list[str], folder: Path) -> dict[str, Any]:
    tables: dict[str, dict[str, Any]] = {name: dict(table) for name, table in settings.items()}
    tables.setdefault("pulsar", {}).setdefault("listen", "127.0.0.1:0")
    tables.setdefault("catalog", {}).setdefault("path", folder / "topics.sqlite")
    tables.setdefault("plugins", {}).setdefault("enabled", plugins)
    return tables


def _filled(path: Path, topics: Iterable[str] | Mapping[str, Mapping[str, str]]) -> SqliteCatalog:
    catalog = SqliteCatalog(path)
    try:
        properties = topics if isinstance(topics, Mapping) else {}
        for topic in topics:
            catalog.create(TopicName.parse(topic), properties=properties.get(topic))
    except BaseException:
        catalog.close()
        raise
    return catalog
