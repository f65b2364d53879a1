"""The backup of all rows that a migration makes."""

from __future__ import annotations

from typing import Any

import asyncpg
import pytest

from broker_core_postgres.schema.backup import find_backup, make_backup, own_tables
from tests.postgres.listing.lister_setup import fill
from tests.support.postgres_server import Database


async def owner_of(connection: Any) -> str:
    return str(
        await connection.fetchval("SELECT nspowner::regrole FROM pg_namespace WHERE nspname = 'broker_core'")
    )


async def test_every_row_of_every_table(database: Database, connection: Any) -> None:
    await fill(
        database, "acme/orders", [("persistent", "a", {"k": "v"}), ("non-persistent", "b-partition-0", {})]
    )
    # Tables of extensions are not in the backup.
    tables = await own_tables(connection)
    assert {'"topics"', '"changes"', '"stamps"', '"migrations"'} <= set(tables)
    owner = await owner_of(connection)
    async with connection.transaction():
        made = await make_backup(connection, 41, "before the test", owner)
    assert await find_backup(connection) == made
    assert (made.schema, made.number) == ("broker_core_backup_41", 41)
    assert made.description.startswith("schema 41 of broker_core at ")
    for table in tables:
        there, kept = [
            await connection.fetch(f"SELECT to_jsonb(t) FROM {schema}.{table} t ORDER BY 1")
            for schema in ("broker_core", made.schema)
        ]
        assert there == kept
    assert (
        await connection.fetchval(
            f"SELECT nspowner::regrole::text FROM pg_namespace WHERE nspname = '{made.schema}'"
        )
        == owner
    )


async def test_one_takes_the_place_of_the_other(connection: Any) -> None:
    owner = await owner_of(connection)
    first = None
    for number, keep in ((9, False), (10, True), (11, False)):
        async with connection.transaction():
            made = await make_backup(connection, number, "again", owner, keep=first if keep else None)
        left = await connection.fetch(
            "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'broker_core_backup%'"
        )
        assert len(left) == (2 if keep else 1)
        assert await find_backup(connection) == made
        first = made


async def test_nobody_writes_meanwhile(connection: Any, database: Database) -> None:
    owner = await owner_of(connection)
    async with database.connected() as other, connection.transaction():
        await make_backup(connection, 1, "of one state", owner)
        assert await other.fetchval("SELECT count(*) FROM broker_core.topics") == 0
        await other.execute("SET lock_timeout = '50ms'")
        with pytest.raises(asyncpg.LockNotAvailableError):
            await other.execute("SELECT broker_core.begin_change('a/b')")


async def test_what_only_looks_like_one(connection: Any) -> None:
    await connection.execute("CREATE SCHEMA broker_core_backup_of_mine; CREATE SCHEMA broker_core_backup_")
    assert await find_backup(connection) is None
