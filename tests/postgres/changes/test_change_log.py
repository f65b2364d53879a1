"""The change log, read through a real pool: changes since a version, and gaps."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from broker_core.change_log import CatalogVersion, ChangeLog, Changes, Gap, Operation
from broker_core.errors import ListingFailed
from broker_core.names import NamespaceName
from broker_core_postgres.changes.change_log import PostgresChangeLog
from broker_core_postgres.connect.server_pools import ServerPools
from broker_core_postgres.settings import PostgresSettings
from tests.support.narrowed import of_type
from tests.support.postgres_server import Database

NAMESPACE = NamespaceName("a", "b")
INSERT = "INSERT INTO broker_core.topics (namespace, local_name, properties) VALUES "


@pytest.fixture
async def server_pools(database: Database) -> AsyncIterator[ServerPools]:
    made = ServerPools(PostgresSettings(dsn=database.dsn))
    yield made
    await made.close()


async def start(log: PostgresChangeLog) -> CatalogVersion:
    return CatalogVersion(await log.catalog_id(), 0)


async def test_it_is_a_change_log(server_pools: ServerPools) -> None:
    log = PostgresChangeLog(server_pools)
    assert isinstance(log, ChangeLog)
    assert log.name == "postgres"
    assert log.version_now(NAMESPACE) is None


async def test_changes_in_their_order(server_pools: ServerPools, connection: Any) -> None:
    log = PostgresChangeLog(server_pools)
    nothing = await log.version(NAMESPACE)
    assert nothing == await start(log)
    assert await log.changes(NAMESPACE, nothing) == Changes(nothing, nothing)
    await connection.execute(
        INSERT + "('a/b', 'p-partition-0', '{}'), ('a/b', 'p-partition-1', '{}'), ('c/d', 'x', '{}')"
    )
    await connection.execute(
        "UPDATE broker_core.topics SET properties = '{\"k\": \"v\"}' WHERE local_name = 'p-partition-1'"
    )
    await connection.execute("DELETE FROM broker_core.topics WHERE local_name = 'p-partition-0'")
    found = of_type(await log.changes(NAMESPACE, nothing), Changes)
    assert found.version == await log.version(NAMESPACE) == CatalogVersion(nothing.catalog_id, 3)
    said = [
        (
            each.version,
            each.operation,
            str(each.listed_before),
            str(each.listed_after),
            dict(each.properties_after),
        )
        for each in found
    ]
    assert said == [
        (1, Operation.CREATE, "", "0-1", {}),
        (2, Operation.UPDATE, "1", "1", {"k": "v"}),
        (3, Operation.DELETE, "0", "", {}),
    ]
    assert {str(each.name) for each in found} == {"persistent://a/b/p"}
    assert len({each.topic_id for each in found}) == 1
    listed: set[str] = set()
    for each in found:
        listed = listed - set(each.removed) | set(each.added)
    assert listed == {"persistent://a/b/p-partition-1"}
    later = of_type(await log.changes(NAMESPACE, CatalogVersion(nothing.catalog_id, 2)), Changes)
    assert [each.version for each in later] == [3]


async def test_gaps(server_pools: ServerPools, connection: Any) -> None:
    log = PostgresChangeLog(server_pools, most_changes=3, most_bytes=1000)
    for number in range(5):
        await connection.execute(INSERT + f"('a/b', 'x{number}', '{{}}')")
    now = await log.version(NAMESPACE)

    async def reason(number: int, catalog_id: str = now.catalog_id) -> str | None:
        found = await log.changes(NAMESPACE, CatalogVersion(catalog_id, number))
        assert found.version == await log.version(NAMESPACE)
        return found.reason if isinstance(found, Gap) else None

    assert await reason(5) is None
    assert await reason(2) is None
    assert await reason(1) == "more than 3 changes, or 1000 bytes of properties"
    assert await reason(6) == "the database is older than the version: a backup was restored"
    assert await reason(5, "another") == "the version is of another catalogue"
    await connection.execute("SELECT broker_core.prune_changes('0 s')")
    assert await reason(4) == "the log reaches back to version 5 only"
    assert await reason(5) is None
    await connection.execute(INSERT + "('a/b', 'large', jsonb_build_object('k', repeat('v', 2000)))")
    assert await reason(5) == "more than 3 changes, or 1000 bytes of properties"
    await connection.execute("SELECT broker_core.renew_catalog_id()")
    assert await reason(6) == "the version is of another catalogue"


async def test_a_forgotten_namespace_goes_on(server_pools: ServerPools, connection: Any) -> None:
    log = PostgresChangeLog(server_pools)
    await connection.execute(INSERT + "('a/b', 'x', '{}')")
    before = await log.version(NAMESPACE)
    await connection.execute("SELECT broker_core.forget_namespace('a/b')")
    found = of_type(await log.changes(NAMESPACE, before), Changes)
    assert [name for each in found for name in each.removed] == ["persistent://a/b/x"]


async def test_a_database_that_is_not_there(database: Database) -> None:
    server_pools = ServerPools(PostgresSettings(dsn=database.dsn.replace(database.name, "nowhere")))
    try:
        with pytest.raises(ListingFailed):
            await PostgresChangeLog(server_pools).version(NAMESPACE)
    finally:
        await server_pools.close()


async def test_a_version_that_comes_again_after_a_restore_is_another_one(
    server_pools: ServerPools, connection: Any
) -> None:
    """As after pg_restore: all tables are as they were in the backup, and the changes since are new ones."""
    log = PostgresChangeLog(server_pools)
    await connection.execute(INSERT + "('a/b', 'kept', '{}')")
    before = await log.version(NAMESPACE)
    tables = ("namespace_versions", "topics", "changes", "stamps")
    for table in tables:
        await connection.execute(f"CREATE TABLE copy_of_{table} AS TABLE broker_core.{table}")
    await connection.execute(INSERT + "('a/b', 'lost', '{}')")
    lost = await log.version(NAMESPACE)
    async with connection.transaction():
        await connection.execute("SET LOCAL session_replication_role = replica")  # no triggers
        await connection.execute("DELETE FROM broker_core.topics WHERE local_name = 'lost'")
        for table in ("namespace_versions", "changes", "stamps"):
            await connection.execute(f"DELETE FROM broker_core.{table}")
            await connection.execute(
                f"INSERT INTO broker_core.{table} OVERRIDING SYSTEM VALUE SELECT * FROM copy_of_{table}"
            )
    assert (await log.version(NAMESPACE)).same_state(before)
    for name in ("other", "more"):
        await connection.execute(INSERT + f"('a/b', '{name}', '{{}}')")
        assert not (await log.version(NAMESPACE)).same_state(lost)
        found = await log.changes(NAMESPACE, lost)
        assert isinstance(found, Gap), name
        assert "restored" in found.reason
    assert isinstance(await log.changes(NAMESPACE, before), Changes)


async def test_the_stamps_go_with_the_log(server_pools: ServerPools, connection: Any) -> None:
    log = PostgresChangeLog(server_pools)
    await connection.execute("SELECT broker_core.set_retention(rows => 2)")
    await connection.execute(INSERT + "('a/b', 'x', '{}'), ('a/b', 'y', '{}'), ('a/b', 'z', '{}')")
    loaded = await log.version(NAMESPACE)
    assert loaded.stamp
    await connection.execute(INSERT + "('a/b', 'one-more', '{}')")
    assert isinstance(await log.changes(NAMESPACE, loaded), Changes)
    await connection.execute(INSERT + "('a/b', 'p', '{}'), ('a/b', 'q', '{}'), ('a/b', 'r', '{}')")
    assert await connection.fetchval("SELECT array_agg(version) FROM broker_core.stamps") == [3]
