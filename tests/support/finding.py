"""The use case that finds topics, over a catalogue or over brokers in memory, for tests."""

from __future__ import annotations

import io
import tempfile
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from broker_core.access.asker import Asker
from broker_core.catalog import AsyncCatalog, CatalogLister, SqliteCatalog, TopicRecord, import_topics
from broker_core.memory.permits import Permits
from broker_core.names import TopicName
from broker_core.service import Find, TopicAsker
from tests.support.memory_lister import MemoryLister
from tests.support.pipelines import NAMESPACE, Made, made

__all__ = ["BASE", "Finding", "finding", "topic"]

BASE = f"persistent://{NAMESPACE}/"


def topic(local: str) -> TopicName:
    return TopicName("persistent", NAMESPACE, local)


@dataclass
class Finding:
    """``catalog`` is that of the server, or an empty one if brokers list."""

    find: Find
    made: Made
    catalog: SqliteCatalog

    async def partitions(self, local: str, **asker: Any) -> int | None:
        """The answers to clients about one topic."""
        return await self.find.partitions(TopicAsker(asker=Asker(**asker)), topic(local))

    def create(self, local: str, partitions: int = 0, **fields: Any) -> TopicRecord:
        return self.catalog.create(topic(local), partitions=partitions, **fields)


@asynccontextmanager
async def finding(
    plugins: Mapping[str, object] | None = None,
    names: Iterable[str] = (),
    *,
    brokers: Iterable[str] | None = None,
    **options: Any,
) -> AsyncIterator[Finding]:
    """The catalogue has topics of these local names; or there is none, and ``brokers`` list theirs."""
    with (
        tempfile.TemporaryDirectory() as folder,
        SqliteCatalog(Path(folder) / "topics.sqlite") as catalog,
    ):
        # As an import: there may be partitions without their topics.
        import_topics(catalog, NAMESPACE, io.BytesIO("".join(f"{topic(name)}\n" for name in names).encode()))
        lister = CatalogLister(catalog, Permits())
        of_file = AsyncCatalog(catalog, lister)
        own: Any = lister if brokers is None else MemoryLister(BASE + name for name in brokers)
        async with made(own, plugins, **options) as m:
            yield Finding(Find(m.pipeline, of_file if brokers is None else None), m, catalog)
        of_file.close()
        lister.close()
