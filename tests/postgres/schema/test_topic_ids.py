"""Ids that the database makes: never reserved, never a text that begins with a dash, and kept by the migration."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import asyncpg
import pytest

from broker_core.catalog import topic_id_text
from broker_core_postgres.schema.run_migrations import migrate
from tests.postgres.schema.old_schema import make_old, only_schema
from tests.support.postgres_server import Database, migrate_dsn

_INSERT = "INSERT INTO broker_core.topics (namespace, local_name) SELECT 'a/b', 't-' || n || "
_IDS = "SELECT local_name, topic_id FROM broker_core.topics"


async def test_no_id_that_is_made_begins_with_a_dash(connection: Any) -> None:
    # One id in 64 would.
    await connection.execute(_INSERT + "'' FROM generate_series(1, 2000) n")
    await connection.execute(_INSERT + "'-partition-' || n % 2 FROM generate_series(3001, 5000) n")
    found = [each["topic_id"] for each in await connection.fetch(_IDS)]
    assert len(set(found)) == 4000
    assert {each.version for each in found} == {4, 8}
    assert not [each for each in found if topic_id_text(each).startswith("-")]
    drawn = await connection.fetchval(
        "SELECT array_agg(broker_core.new_topic_id()) FROM generate_series(1, 2000)"
    )
    assert all(each.version == 4 and each.variant == uuid.RFC_4122 for each in drawn)
    assert not [each for each in drawn if topic_id_text(each).startswith("-")]


@pytest.mark.parametrize("reserved", [0, 1])
async def test_a_reserved_id_is_refused(connection: Any, reserved: int) -> None:
    insert = "INSERT INTO broker_core.topics (namespace, local_name, topic_id) VALUES ('a/b', 'x', $1)"
    with pytest.raises(asyncpg.CheckViolationError, match="topic_id_is_not_reserved"):
        await connection.execute(insert, uuid.UUID(int=reserved))
    # An id of others may begin with a dash: it is read, not made.
    await connection.execute(insert, uuid.UUID(int=0xF8 << 120))
    assert dict(await connection.fetch(_IDS)) == {"x": uuid.UUID(int=0xF8 << 120)}


async def test_two_that_migrate_at_once_keep_the_ids_and_replace_reserved_ones(
    empty_database: Database,
) -> None:
    await make_old(empty_database, 8)
    async with empty_database.connected() as connection:
        await connection.execute(
            "INSERT INTO broker_core.topics (namespace, local_name, topic_id, created_version, changed_version)"
            " SELECT 'a/b', 'zero' || suffix, '00000000-0000-0000-0000-000000000000', 1, 1"
            " FROM unnest('{-partition-0,-partition-1}'::text[]) suffix"
        )
        before = dict(await connection.fetch(_IDS))
        versions = "SELECT namespace, version, log_floor FROM broker_core.namespaces ORDER BY 1"
        old = [tuple(row) for row in await connection.fetch(versions)]
        done = await asyncio.gather(*(migrate_dsn(empty_database.dsn) for _ in range(2)))
        assert min(len(each.applied) for each in done) == 0
        after = dict(await connection.fetch(_IDS))
        changed = {name for name in before if before[name] != after[name]}
        assert changed == {"zero-partition-0", "zero-partition-1"}
        assert len({after[name] for name in changed}) == 1
        assert after["zero-partition-0"].version == 8
        # Followers of this namespace read all of it; the others go on.
        now = [tuple(row) for row in await connection.fetch(versions)]
        assert [row for row in now if row not in old] == [("a/b", 2, 2)]
        assert await connection.fetchval("SELECT broker_core.stamp_of('a/b', 2)") is not None
        assert (await migrate(connection)).applied == []
        assert dict(await connection.fetch(_IDS)) == after


async def test_a_migration_that_ends_early_has_changed_no_id(empty_database: Database) -> None:
    with only_schema(8):
        await migrate_dsn(empty_database.dsn)
    async with empty_database.connected() as connection, empty_database.connected() as watching:
        await connection.execute(_INSERT + "'' FROM generate_series(1, 200) n")
        before = await connection.fetch(_IDS)
        transaction = watching.transaction()
        await transaction.start()
        await watching.execute("LOCK TABLE broker_core.topics IN SHARE ROW EXCLUSIVE MODE")
        migration = asyncio.create_task(migrate_dsn(empty_database.dsn))
        await asyncio.wait([migration], timeout=0.2)
        migration.cancel()
        await asyncio.gather(migration, return_exceptions=True)
        await transaction.rollback()
        assert await connection.fetch(_IDS) == before
        assert (await migrate(connection)).applied
        assert await connection.fetch(_IDS) == before
