"""Kafka's configs and replicas of the catalogue's topics, mirrored: what the catalogue does not have any more goes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from broker_core.catalog import SqliteCatalog, creation, merge
from broker_core.names import NamespaceName, TopicName
from broker_core.plugin_cli import Deletions
from broker_core_postgres.fill.sync.catalog_source import CatalogSource
from broker_core_postgres.fill.sync.differences import KafkaFacts, as_json, as_line
from broker_core_postgres.fill.sync.mirror import Mirror, MirrorReport

NAMESPACE = NamespaceName.parse("a/b")


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[SqliteCatalog]:
    with SqliteCatalog(tmp_path / "catalog.sqlite") as catalog:
        catalog.edit(name("x"), creation(name("x"), 2, configs={"retention.ms": "1"}, replication=3))
        catalog.create(name("plain"), properties={"k": "v"})
        yield catalog


def name(local: str) -> TopicName:
    return TopicName("persistent", NAMESPACE, local)


async def sync(connection: Any, catalog: SqliteCatalog) -> MirrorReport:
    async with Mirror.read(connection, CatalogSource(catalog)) as mirror:
        return await mirror.write(Deletions(most=0))


async def rows(connection: Any) -> dict[str, tuple[str | None, int | None]]:
    found = await connection.fetch("SELECT local_name, configs::text, replication FROM broker_core.topics")
    return {local: (configs, replication) for local, configs, replication in found}


async def test_they_are_those_of_the_catalogue(connection: Any, catalog: SqliteCatalog) -> None:
    await sync(connection, catalog)
    own = ('{"retention.ms": "1"}', 3)
    assert await rows(connection) == {"x-partition-0": own, "x-partition-1": own, "plain": (None, None)}
    assert not (await sync(connection, catalog)).written
    catalog.edit(name("x"), merge(name("x"), {}, configs=None))
    catalog.edit(name("plain"), merge(name("plain"), {}, configs={"segment.ms": "5"}))
    async with Mirror.read(connection, CatalogSource(catalog)) as mirror:
        (count,) = (await mirror.counts()).values()
        assert (count.added, count.changed, count.removed) == (0, 3, 0)
        told = {each.topic.rpartition("/")[2]: each async for each in mirror.differences()}
        assert told.keys() == {"x", "plain"}
        assert told["x"].configs is not None
        assert told["x"].configs.database == KafkaFacts({"retention.ms": "1"}, 3)
        assert told["x"].configs.source == KafkaFacts({}, 3)
        assert as_json(told["plain"])["configs"] == {
            "database": {"configs": {}, "replication": None},
            "source": {"configs": {"segment.ms": "5"}, "replication": None},
        }
        assert as_line(told["x"], "catalog").endswith(
            'configs {"retention.ms": "1"} and 3 replicas in the database, {} and 3 replicas in the catalog'
        )
        assert (await mirror.write(Deletions(most=0))).counts.changed == 3
    less, other = (None, 3), ('{"segment.ms": "5"}', None)
    assert await rows(connection) == {"x-partition-0": less, "x-partition-1": less, "plain": other}
    assert not (await sync(connection, catalog)).written
