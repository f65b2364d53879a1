"""A topic of the catalogue that was deleted and created anew between two runs of a mirror is another topic."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from broker_core.catalog import SqliteCatalog, topic_id_text
from broker_core.change_log import CatalogVersion, Changes, Operation
from broker_core.names import NamespaceName, TopicName
from broker_core.plugin_cli import Deletions
from broker_core_postgres.changes.change_log import read_changes
from broker_core_postgres.fill.sync.catalog_source import CatalogSource
from broker_core_postgres.fill.sync.differences import Sides, as_json, as_line
from broker_core_postgres.fill.sync.mirror import Mirror, MirrorReport
from tests.postgres.schema.log_replay import check_everything

NAMESPACE = NamespaceName.parse("a/b")
_ROWS = "SELECT local_name, topic_id, properties::text FROM broker_core.topics ORDER BY 1"
_STATE = """SELECT c.id::text, v.version, broker_core.stamp_of('a/b', v.version)
    FROM broker_core.catalog c, broker_core.namespaces v"""


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[SqliteCatalog]:
    with SqliteCatalog(tmp_path / "catalog.sqlite") as catalog:
        catalog.create(name("x"), partitions=2, properties={"k": "old"})
        catalog.create(name("grown"))
        catalog.create(name("y"), properties={"k": "v"})
        yield catalog


def name(local: str) -> TopicName:
    return TopicName("persistent", NAMESPACE, local)


async def sync(connection: Any, catalog: SqliteCatalog) -> MirrorReport:
    async with Mirror.read(connection, CatalogSource(catalog)) as mirror:
        return await mirror.write(Deletions(most=0))


def counts(report: MirrorReport) -> tuple[int, int, int, int]:
    found = report.counts
    return found.added, found.changed, found.removed, found.created_anew


async def ids(connection: Any) -> dict[str, uuid.UUID]:
    return {row[0]: row[1] for row in await connection.fetch(_ROWS)}


async def expected(catalog: SqliteCatalog) -> dict[str, uuid.UUID]:
    with catalog.topics(NAMESPACE) as (_, records):
        return {
            listed: record.topic_id for record in records for listed in record.listed.names(record.name.local)
        }


async def test_the_ids_are_those_of_the_catalogue(connection: Any, catalog: SqliteCatalog) -> None:
    assert counts(await sync(connection, catalog)) == (4, 0, 0, 0)
    assert await ids(connection) == await expected(catalog)
    catalog.create(name("later"))
    assert counts(await sync(connection, catalog)) == (1, 0, 0, 0)
    assert await ids(connection) == await expected(catalog)
    assert not (await sync(connection, catalog)).written


async def test_it_is_deleted_and_created_with_nothing_of_the_old_one(
    connection: Any, catalog: SqliteCatalog
) -> None:
    await sync(connection, catalog)
    before = await ids(connection)
    since = CatalogVersion(*await connection.fetchrow(_STATE))
    catalog.delete(name("x"))
    catalog.create(name("x"), partitions=1)
    catalog.delete(name("grown"))
    catalog.create(name("grown"), partitions=1)
    async with Mirror.read(connection, CatalogSource(catalog)) as mirror:
        (count,) = (await mirror.counts()).values()
        assert (count.added, count.changed, count.removed, count.created_anew) == (1, 0, 2, 1)
        told = {each.topic.rpartition("/")[2]: each async for each in mirror.differences()}
        assert told.keys() == {"x", "grown"}
        other = Sides(
            topic_id_text(before["x-partition-0"]), topic_id_text((await expected(catalog))["x-partition-0"])
        )
        assert told["x"].topic_id == other
        assert as_json(told["x"])["topic_id"] == {"database": other.database, "source": other.source}
        assert f"created anew, id {other.database} in the database, {other.source} in the catalog" in as_line(
            told["x"], "catalog"
        )
        report = await mirror.write(Deletions(most=2))
    assert counts(report) == (1, 0, 2, 1)
    assert await ids(connection) == await expected(catalog)
    rows = {row[0]: row[2] for row in await connection.fetch(_ROWS)}
    assert rows == {"x-partition-0": "{}", "grown-partition-0": "{}", "y": '{"k": "v"}'}
    async with connection.transaction(isolation="repeatable_read"):
        changes = await read_changes(connection, NAMESPACE, since)
    assert isinstance(changes, Changes)
    of_x = [each for each in changes.changes if each.name == name("x")]
    assert [each.operation for each in of_x] == [Operation.DELETE, Operation.CREATE]
    assert [each.topic_id for each in of_x] == [
        before["x-partition-0"],
        (await ids(connection))["x-partition-0"],
    ]
    assert [dict(each.properties_after) for each in of_x] == [{}, {}]
    assert len({each.version for each in changes.changes}) == 1
    await check_everything(connection)
    assert not (await sync(connection, catalog)).written


async def test_topics_of_the_time_before_ids_are_taken_over(connection: Any, catalog: SqliteCatalog) -> None:
    """Without an allowance of deletions: no name goes."""
    await connection.execute(
        "INSERT INTO broker_core.topics (namespace, local_name, properties)"
        " VALUES ('a/b', 'x-partition-0', '{\"k\": \"old\"}'), ('a/b', 'y', '{\"k\": \"other\"}')"
    )
    assert counts(await sync(connection, catalog)) == (2, 0, 0, 2)
    assert await ids(connection) == await expected(catalog)
    assert {row[0]: row[2] for row in await connection.fetch(_ROWS)}["y"] == '{"k": "v"}'
