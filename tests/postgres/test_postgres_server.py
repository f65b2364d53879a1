"""The server of the tests itself."""

from __future__ import annotations

from typing import Any

from tests.support.postgres_server import Database, PostgresServer


def test_its_shared_memory_goes_with_its_folder(postgres_server: PostgresServer) -> None:
    """Segments in /dev/shm would stay when a server is killed, a megabyte each."""
    assert any((postgres_server.data / "pg_dynshmem").iterdir())


async def test_databases_have_nothing_of_each_other(postgres_server: PostgresServer, connection: Any) -> None:
    await connection.execute("CREATE TABLE public.made_here (id int)")
    other = postgres_server.create_database()
    try:
        assert await tables_of(other, "public") == set()
        assert "topics" in await tables_of(other, "broker_core")
    finally:
        postgres_server.drop_database(other.name)


async def tables_of(database: Database, schema: str) -> set[str]:
    async with database.connected() as connection:
        rows = await connection.fetch("SELECT tablename FROM pg_tables WHERE schemaname = $1", schema)
    return {row["tablename"] for row in rows}
