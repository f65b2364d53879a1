"""One change of the schema at a time, while the tables are free."""

from __future__ import annotations

import asyncio
from typing import Any

import asyncpg
import pytest

from broker_core_postgres.schema.migration_lock import (
    MigrationFailed,
    migration_lock,
    retry_while_locked,
)
from tests.support.postgres_server import Database


async def test_the_second_waits_and_is_told(database: Database) -> None:
    first, second = await database.connect(), await database.connect()
    order: list[str] = []
    begins, told = asyncio.Event(), asyncio.Event()

    async def one() -> None:
        async with migration_lock(first):
            order.append("first begins")
            begins.set()
            await told.wait()
            order.append("first ends")

    async def two() -> None:
        async with migration_lock(second, told.set):
            order.append("second")

    try:
        begun = asyncio.create_task(one())
        await begins.wait()
        await asyncio.gather(begun, two())
        assert order == ["first begins", "first ends", "second"]
    finally:
        await first.close()
        await second.close()


async def test_the_lock_is_let_go_of_after_a_failure(connection: Any) -> None:
    with pytest.raises(MigrationFailed, match=r"permission denied for database x.*GRANT CREATE ON DATABASE"):
        async with migration_lock(connection):
            raise asyncpg.InsufficientPrivilegeError("permission denied for database x")
    assert await connection.fetchval("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'") == 0


async def test_the_work_begins_anew_until_the_tables_are_free(connection: Any, database: Database) -> None:
    other = await database.connect()
    tries = 0

    async def work() -> None:
        nonlocal tries
        tries += 1
        await connection.execute("INSERT INTO broker_core.mirrors VALUES ('x', 'y', now())")
        if tries == 2:
            await writer.rollback()
        await connection.execute("LOCK TABLE broker_core.topics IN ACCESS EXCLUSIVE MODE")

    try:
        writer = other.transaction()
        await writer.start()
        await other.execute("LOCK TABLE broker_core.topics IN ROW EXCLUSIVE MODE")
        await retry_while_locked(connection, work, 60)
        assert tries == 2
        assert await connection.fetchval("SELECT count(*) FROM broker_core.mirrors") == 1
    finally:
        await other.close()
