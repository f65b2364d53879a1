from __future__ import annotations

from pathlib import Path

from broker_core.catalog import SqliteCatalog
from broker_core.names import TopicName
from broker_core.servers.pulsar import CatalogPartitions


async def test_the_partitions_of_the_catalogue(tmp_path: Path) -> None:
    topic = TopicName.parse("persistent://a/b/x")
    with SqliteCatalog(tmp_path / "topics.sqlite") as catalog:
        partitions = CatalogPartitions(catalog)
        assert await partitions.partitions(topic) is None
        catalog.create(topic, partitions=3)
        assert await partitions.partitions(topic) == 3
