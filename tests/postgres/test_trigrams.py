"""The index of trigrams, with one, both or none of the extensions."""

from __future__ import annotations

from typing import Any

from broker_core_postgres.migrate import migrate
from broker_core_postgres.trigrams import make_index, read_trigrams
from tests.support.postgres_server import Database


async def test_off_makes_none(empty_database: Database) -> None:
    connection = await empty_database.connect()
    try:
        assert (await migrate(connection, trigrams="off")).trigrams is None
        assert await read_trigrams(connection) is None
        assert (await migrate(connection)).trigrams == "namespace"
        assert (await migrate(connection, trigrams="off")).trigrams == "namespace", "it is left where it is"
    finally:
        await connection.close()


async def test_without_btree_gin_it_is_of_names_alone(connection: Any) -> None:
    await connection.execute("DROP EXTENSION btree_gin CASCADE")
    assert await read_trigrams(connection) is None
    assert await make_index(connection) == "matched"
    assert await make_index(connection) == "matched"
    await connection.execute("CREATE EXTENSION btree_gin SCHEMA public")
    assert await make_index(connection) == "namespace"


async def test_without_pg_trgm_there_is_none(connection: Any) -> None:
    await connection.execute("DROP EXTENSION pg_trgm CASCADE")
    assert await make_index(connection) is None
