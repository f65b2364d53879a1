"""Databases of older versions of the plugin: with their migrations alone, and with topics."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from broker_core_postgres.schema.run_migrations import apply_migration, make_migrations_table, migrate
from broker_core_postgres.schema.schema_version import migrations
from tests.support.postgres_server import Database

__all__ = ["CONTENT", "make_old", "only_schema", "rows_of"]

OURS = migrations()
NAMES = 300
#: The first schemas with functions for feeders, and with roles.
HAS_FUNCTIONS = 3
HAS_ROLES = 5
#: What readers, writers and followers of changes see of a database, in any schema.
CONTENT = (
    (
        "SELECT namespace, domain, local_name, matched, partition, properties::text, topic_id, created_version,"
        " changed_version FROM broker_core.topics ORDER BY 1, 2, 3"
    ),
    "SELECT namespace, version, topics, loaded, log_floor, log_rows FROM broker_core.namespace_versions ORDER BY 1",
    (
        "SELECT namespace, version, seq, operation, domain, local_name, topic_id, changed FROM broker_core.changes"
        " ORDER BY 1, 2, 3"
    ),
    "SELECT * FROM broker_core.stamps ORDER BY 1, 2",
    "SELECT namespace, domain, local_name, topic_id, deleted_version FROM broker_core.tombstones ORDER BY 1, 2, 3",
    "SELECT versions, rows, age FROM broker_core.retention",
)


@contextmanager
def only_schema(number: int) -> Iterator[None]:
    """The package as it was when this schema was the newest."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (
            "schema.run_migrations",
            "schema.schema_version",
            "schema.roll_back",
            "status",
            "schema.auto_migrate",
        ):
            patch.setattr(f"broker_core_postgres.{module}.migrations", lambda: OURS[:number])
        yield


async def make_old(database: Database, number: int) -> None:
    """Migrate a database to an old schema and fill it: topics, partitions, properties, updates, tombstones."""
    async with database.connected() as connection:
        with only_schema(number):
            if number < HAS_ROLES:
                await _make_before_roles(connection, number)
            else:
                await migrate(connection, trigrams="auto" if number >= 7 else "off")
        await connection.execute(
            "INSERT INTO broker_core.topics (namespace, local_name, properties) SELECT 'acme/orders', 'o-' || n || "
            "CASE WHEN n % 3 = 0 THEN '-partition-' || n % 2 ELSE '' END, "
            "CASE WHEN n % 2 = 0 THEN '{}' ELSE jsonb_build_object('n', n::text) END "
            f"FROM generate_series(1, {NAMES}) n"
        )
        await connection.execute(
            "UPDATE broker_core.topics SET properties = '{\"x\": \"y\"}' WHERE local_name = 'o-1'"
        )
        await connection.execute("DELETE FROM broker_core.topics WHERE local_name = 'o-2'")
        if number >= HAS_FUNCTIONS:
            await connection.execute("SELECT broker_core.declare_namespace('acme/empty')")


async def _make_before_roles(connection: Any, number: int) -> None:
    """`migrate` ends with granting the roles, which came later."""
    owner = await connection.fetchval("SELECT quote_ident(current_user)")
    async with connection.transaction():
        await connection.execute("CREATE SCHEMA broker_core")
        await make_migrations_table(connection)
        for migration in OURS[:number]:
            await apply_migration(connection, migration, owner)


async def rows_of(connection: Any) -> list[list[tuple[Any, ...]]]:
    """The rows of all queries in ``CONTENT``."""
    return [[tuple(row) for row in await connection.fetch(query)] for query in CONTENT]
