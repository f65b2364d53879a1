from __future__ import annotations

import io
from typing import Any

from broker_core.names import NamespaceName
from broker_core_postgres.load import load_topics
from broker_core_postgres.upkeep import refresh_statistics, sorting_in
from tests.support.eventually import eventually
from tests.support.postgres_server import Database

_INSERT = (
    "INSERT INTO broker_core.topics (namespace, local_name)"
    " SELECT $1, 'topic-' || i FROM generate_series(1, 20000) i"
)
_ANALYZED = "SELECT reltuples::int FROM pg_class WHERE oid = 'broker_core.topics'::regclass"


async def test_the_planner_learns_of_a_load(database: Database) -> None:
    connection = await database.connect()
    try:
        names = "\n".join(f"topic-{number}" for number in range(12_000))
        report = await load_topics(connection, NamespaceName("a", "b"), io.BytesIO(names.encode()))
        await refresh_statistics(connection, 0)
        assert await connection.fetchval(_ANALYZED) <= 0
        await refresh_statistics(connection, report.added)
        assert await connection.fetchval(_ANALYZED) == 12_000
    finally:
        await connection.close()


async def test_that_it_cannot_is_no_failure(empty_database: Database) -> None:
    connection = await empty_database.connect()
    try:
        await refresh_statistics(connection, 1)
        assert await connection.fetchval("SELECT 1") == 1
    finally:
        await connection.close()


async def test_a_second_connection_sorts_in_while_the_first_writes(database: Database) -> None:
    connection = await database.connect()
    looking = await database.connect()
    await looking.execute("CREATE EXTENSION pgstattuple")

    async def pending() -> int:
        count: int = await looking.fetchval(
            "SELECT pending_tuples FROM pgstatginindex('broker_core.topics_trigrams')"
        )
        return count

    async def none_is_pending() -> bool:
        return await pending() == 0

    try:
        await connection.execute("SET gin_pending_list_limit = '1GB'")
        async with connection.transaction():
            await connection.execute(_INSERT, "a/b")
            assert await pending() > 0
            async with sorting_in(database.connect, 20_000):
                await eventually(none_is_pending)
    finally:
        await connection.close()
        await looking.close()


async def test_without_a_second_connection_the_first_does_it_all(database: Database) -> None:
    async def refused() -> Any:
        raise OSError("no more connections")

    connection = await database.connect()
    try:
        async with sorting_in(refused, 20_000):
            await connection.execute(
                "INSERT INTO broker_core.topics (namespace, local_name) VALUES ('a/b', 'c')"
            )
        async with sorting_in(None, 20_000):
            await connection.execute(
                "INSERT INTO broker_core.topics (namespace, local_name) VALUES ('a/b', 'd')"
            )
        assert await connection.fetchval("SELECT count(*) FROM broker_core.topics") == 2
    finally:
        await connection.close()
