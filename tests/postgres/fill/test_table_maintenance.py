from __future__ import annotations

import io

from broker_core.names import NamespaceName
from broker_core_postgres.fill.load_file import load_topics
from broker_core_postgres.fill.table_maintenance import maintain_topics
from tests.support.postgres_server import Database

_ANALYZED = "SELECT reltuples::int FROM pg_class WHERE oid = 'broker_core.topics'::regclass"


async def test_the_planner_learns_of_a_load(database: Database) -> None:
    async with database.connected() as connection:
        names = "\n".join(f"topic-{number}" for number in range(12_000))
        report = await load_topics(connection, NamespaceName("a", "b"), io.BytesIO(names.encode()))
        await maintain_topics(connection, 0)
        assert await connection.fetchval(_ANALYZED) <= 0
        await maintain_topics(connection, report.added)
        assert await connection.fetchval(_ANALYZED) == 12_000


async def test_that_it_cannot_is_no_failure(empty_database: Database) -> None:
    async with empty_database.connected() as connection:
        await maintain_topics(connection, 1)
        assert await connection.fetchval("SELECT 1") == 1
