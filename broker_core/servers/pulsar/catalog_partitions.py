"""The partitions of topics of the embedded catalogue, read in a thread."""

from __future__ import annotations

import asyncio

from broker_core.catalog import SqliteCatalog, reading_catalog
from broker_core.names import TopicName

__all__ = ["CatalogPartitions"]


class CatalogPartitions:
    """What the lookups of a server without a cluster ask."""

    def __init__(self, catalog: SqliteCatalog) -> None:
        self._catalog = catalog

    async def partitions(self, topic: TopicName) -> int | None:
        """The number of partitions of a topic, 0 for one without; ``None`` where there is no such topic.

        Raises :exc:`~broker_core.errors.ListingFailed`.
        """
        with reading_catalog():
            return await asyncio.to_thread(self._catalog.partitions, topic)
