"""A full disk: listings and changes that need space on it fail, all others are whole."""

from __future__ import annotations

from collections.abc import Iterator

import asyncpg
import pytest

from broker_core.client import ServerRefused
from broker_core_postgres.connect.failures import failure_of
from tests.postgres.fault_setup import NAMESPACE, TOPICS, fill_topics, serving
from tests.support.postgres_server import Database, PostgresServer
from tests.support.small_disk import small_disk


@pytest.fixture(scope="module")
def on_small_disk(postgres_server: PostgresServer) -> Iterator[Database]:
    """A database with its topics and temporary files on a disk of 2 MB."""
    folder = postgres_server.folder / "small"
    with small_disk(folder, "2m", like=postgres_server.data):
        postgres_server.sql(f"CREATE TABLESPACE small LOCATION '{folder}'")
        database = postgres_server.create_database()
        fill_topics(database)
        try:
            database.sql("ALTER TABLE broker_core.topics SET TABLESPACE small")
            yield database
        finally:
            postgres_server.drop_database(database.name)
            postgres_server.sql("DROP TABLESPACE small")


async def test_a_change_that_does_not_fit_changes_nothing(on_small_disk: Database) -> None:
    async with serving(on_small_disk.dsn) as broker:
        before = await broker.server.list(NAMESPACE)
        assert sorted(before.topics) == TOPICS
        feeder = await on_small_disk.connect()
        with pytest.raises(asyncpg.DiskFullError) as full:
            await feeder.execute(
                "INSERT INTO broker_core.topics (namespace, local_name) "
                f"SELECT '{NAMESPACE}', 'another-topic-' || n FROM generate_series(1, 30000) n"
            )
        await feeder.close()
        assert failure_of(full.value).message == "the disk of PostgreSQL is full: make room there"
        assert not (await broker.server.list(NAMESPACE, topics_hash=before.topics_hash)).changed
        assert sorted(await broker.list()) == TOPICS


async def test_a_listing_that_needs_room_is_an_error(on_small_disk: Database) -> None:
    other = "public/large"
    on_small_disk.sql(
        "ALTER TABLE broker_core.topics SET TABLESPACE pg_default; "
        "INSERT INTO broker_core.topics (namespace, local_name) "
        f"SELECT '{other}', repeat('x', 200) || n FROM generate_series(1, 15000) n"
    )
    # A plan with a sort needs space; the usual one reads the rows in the order of an index.
    sorting = "-c%20temp_tablespaces%3Dsmall%20-c%20work_mem%3D64kB%20-c%20enable_indexscan%3Doff"
    sorting += "%20-c%20enable_indexonlyscan%3Doff"
    async with serving(f"{on_small_disk.dsn}?options={sorting}") as broker:
        with pytest.raises(ServerRefused, match="the disk of PostgreSQL is full"):
            await broker.server.list(other)
        assert broker.metric("failures_total", reason="disk_full") == 1
        assert sorted(await broker.list()) == TOPICS
    async with serving(on_small_disk.dsn) as broker:
        assert len((await broker.server.list(other)).topics) == 15000
