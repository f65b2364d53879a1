"""The views for other programs: their documented columns, for every role that reads, and by ranges."""

from __future__ import annotations

from typing import Any

import asyncpg
import pytest

from tests.postgres.listing.lister_setup import fill
from tests.support.postgres_server import Database

#: The columns and types of version 1, which stay for as long as version 1 exists.
PROMISED = {
    "batch_v1_catalog": {"catalog_id": "text", "pages": "bigint"},
    "batch_v1_namespaces": {"namespace": "text", "version": "bigint", "stamp": "text", "log_floor": "bigint"},
    "batch_v1_stamps": {"namespace": "text", "version": "bigint", "stamp": "text"},
    "batch_v1_topics": {
        "place": "tid",
        "namespace": "text",
        "domain": "text",
        "local_name": "text",
        "properties": "jsonb",
    },
    "batch_v1_changes": {"namespace": "text", "version": "bigint", "domain": "text", "local_name": "text"},
}
RANGE = (
    "SELECT local_name, properties ->> 'k' FROM broker_core.batch_v1_topics"
    " WHERE place >= $1::text::tid AND place < $2::text::tid AND namespace = ANY($3::text[])"
)


@pytest.mark.parametrize("view", PROMISED)
async def test_what_is_promised_is_there(connection: Any, view: str) -> None:
    columns = await connection.fetch(
        "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = $1::text::regclass",
        f"broker_core.{view}",
    )
    assert dict(map(tuple, columns)).items() >= PROMISED[view].items()


async def test_they_say_what_the_tables_say(database: Database, connection: Any) -> None:
    await fill(database, "acme/orders", [("persistent", f"t{n}", {"k": str(n)}) for n in range(2000)])
    await connection.execute("DELETE FROM broker_core.topics WHERE local_name = 't7'")
    await connection.execute(
        "INSERT INTO broker_core.topics (namespace, local_name) VALUES ('acme/gone', 'x')"
    )
    await connection.execute("SELECT broker_core.forget_namespace('acme/gone')")
    catalogue, pages = await connection.fetchrow("SELECT catalog_id, pages FROM broker_core.batch_v1_catalog")
    assert catalogue == str(await connection.fetchval("SELECT id FROM broker_core.catalog"))
    (found,) = await connection.fetch("SELECT * FROM broker_core.batch_v1_namespaces")
    there = await connection.fetchrow(
        "SELECT version, broker_core.stamp_of(namespace, version), log_floor FROM broker_core.namespaces"
    )
    assert tuple(found) == ("acme/orders", *there)
    assert found["stamp"] is not None
    stamps = dict(
        await connection.fetch(
            "SELECT version, stamp FROM broker_core.batch_v1_stamps WHERE namespace = 'acme/orders'"
        )
    )
    assert stamps[found["version"]] == found["stamp"]
    changed = (
        "SELECT local_name FROM broker_core.batch_v1_changes WHERE namespace = 'acme/orders' AND version = $1"
    )
    assert await connection.fetch(changed, found["version"]) == [("t7",)]
    names = [
        tuple(row)
        for page in range(pages)
        for row in await connection.fetch(RANGE, f"({page},0)", f"({page + 1},0)", ["acme/orders"])
    ]
    assert pages > 1
    assert sorted(names) == sorted((f"t{n}", str(n)) for n in range(2000) if n != 7)


async def test_a_range_of_places_is_read_without_the_rest(database: Database, connection: Any) -> None:
    await fill(database, "acme/orders", [("persistent", f"t{n}", {}) for n in range(2000)])
    await connection.execute("ANALYZE broker_core.topics")
    plan = await connection.fetch(f"EXPLAIN {RANGE}", "(1,0)", "(2,0)", ["acme/orders"])
    assert any("Tid Range Scan on topics" in line for (line,) in plan)


@pytest.mark.parametrize("role", ["broker_core_reader", "broker_core_feeder"])
async def test_who_reads_may(database: Database, role: str) -> None:
    database.sql(f"DROP ROLE IF EXISTS batch; CREATE ROLE batch LOGIN IN ROLE {role}")
    batch = await database.connect("batch")
    try:
        for view in PROMISED:
            await batch.fetch(f"SELECT * FROM broker_core.{view}")
        async with batch.transaction(isolation="repeatable_read", readonly=True):
            await batch.execute("LOCK TABLE broker_core.batch_v1_topics IN ACCESS SHARE MODE")
            async with database.connected() as other:
                with pytest.raises(asyncpg.LockNotAvailableError):
                    async with other.transaction():
                        await other.execute("LOCK TABLE broker_core.topics IN ACCESS EXCLUSIVE MODE NOWAIT")
                async with other.transaction():
                    await other.execute("LOCK TABLE broker_core.topics IN SHARE ROW EXCLUSIVE MODE NOWAIT")
    finally:
        await batch.close()
        database.sql("DROP ROLE batch")
