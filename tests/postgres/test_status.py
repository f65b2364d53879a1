"""The state of a database, as commands show it."""

from __future__ import annotations

from typing import Any

from broker_core_postgres.schema.schema_version import migrations
from broker_core_postgres.status import read_status
from tests.support.narrowed import present
from tests.support.postgres_server import Database


async def test_of_a_database_that_can_be_served_from(connection: Any, database: Database) -> None:
    await connection.execute(
        "INSERT INTO broker_core.topics (namespace, local_name) VALUES ('a/b', 'x'), ('a/b', 'y')"
    )
    await connection.execute("SELECT broker_core.declare_namespace('c/d')")
    status = await read_status(connection)
    assert (status.problem, status.schema, status.schema_needed) == (
        None,
        len(migrations()),
        len(migrations()),
    )
    assert (status.database, status.user, status.replica, status.read_only) == (
        database.name,
        "postgres",
        False,
        False,
    )
    assert status.roles_missing == []
    assert status.catalog_id == str(await connection.fetchval("SELECT id FROM broker_core.catalog"))
    assert (status.retention_seconds, status.trigrams) == (7 * 24 * 3600, "namespace")
    shown = [(each.namespace, each.version, each.topics, each.changes_kept) for each in status.namespaces]
    assert shown == [("a/b", 1, 2, 2), ("c/d", 1, 0, 0)]


async def test_of_one_that_cannot(empty_database: Database) -> None:
    async with empty_database.connected() as connection:
        status = await read_status(connection)
    assert status.schema == 0
    assert "run `broker-core postgres migrate`" in present(status.problem)
    assert status.namespaces == []
