"""Automatic migration of an older schema, and errors that name the command and the user to run it as."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from broker_core.errors import ListingFailed
from broker_core_postgres.schema.auto_migrate import AutoMigration, how_to_go_back, migrate_if_older
from broker_core_postgres.schema.run_migrations import MigrationResult
from broker_core_postgres.schema.schema_version import SchemaMismatch, SchemaTooOld, check_schema, migrations
from broker_core_postgres.service import DatabaseRefused
from broker_core_postgres.settings import PostgresSettings
from tests.postgres.listing.test_lister import asking, names
from tests.postgres.schema.old_schema import make_old, rows_of
from tests.postgres.test_service import started
from tests.support.eventually import eventually
from tests.support.narrowed import present
from tests.support.postgres_server import Database, migrate_dsn

NEWEST = len(migrations())
OLD = [5, 6, 7]


async def schema_of(database: Database) -> int:
    async with database.connected() as connection:
        return int(await connection.fetchval("SELECT max(number) FROM broker_core.migrations"))


@pytest.mark.parametrize("number", OLD)
async def test_a_server_migrates_at_its_start(empty_database: Database, number: int) -> None:
    await make_old(empty_database, number)
    async with empty_database.connected() as connection:
        before = await rows_of(connection)
        async with started(dsn=empty_database.dsn) as service:
            assert len(names(await service.lister.list_topics(asking()))) == len(before[0])
        assert await check_schema(connection) == NEWEST
        assert await rows_of(connection) == before
        kept = await connection.fetchval(f"SELECT count(*) FROM broker_core_backup_{number}.topics")
        assert kept == len(before[0])


async def test_two_servers_that_start_at_once(empty_database: Database) -> None:
    await make_old(empty_database, OLD[0])

    async def serve() -> int:
        async with started(dsn=empty_database.dsn) as service:
            return len(names(await service.lister.list_topics(asking())))

    first, second = await asyncio.gather(serve(), serve())
    assert first == second > 0
    async with empty_database.connected() as connection:
        applied = await connection.fetch("SELECT number, applied FROM broker_core.migrations ORDER BY number")
        assert [number for number, _ in applied] == list(range(1, NEWEST + 1))
        assert len({moment for _, moment in applied[OLD[0] :]}) == 1, "one of them did it, in one transaction"


async def test_switched_off(empty_database: Database) -> None:
    await make_old(empty_database, OLD[-1])
    with pytest.raises(DatabaseRefused, match=f"has schema {OLD[-1]}, and schema {NEWEST} is needed"):
        async with started(dsn=empty_database.dsn, auto_migrate=False):
            pass
    assert await schema_of(empty_database) == OLD[-1]


async def test_a_user_who_may_not(empty_database: Database) -> None:
    await make_old(empty_database, OLD[-1])
    empty_database.sql(
        "DROP ROLE IF EXISTS just_reads; CREATE ROLE just_reads LOGIN IN ROLE broker_core_reader"
    )
    try:
        with pytest.raises(DatabaseRefused) as refused:
            async with started(dsn=empty_database.dsn_of("just_reads")):
                pass
        said = str(refused.value)
        assert "Run `broker-core postgres migrate --dsn URL` as a user who may create in the database" in said
        assert "is a member of broker_core_migrator" in said
        assert await schema_of(empty_database) == OLD[-1]
        # An owner without the right to create in the database cannot make the backup: nothing is changed.
        empty_database.sql("GRANT broker_core_migrator TO just_reads")
        with pytest.raises(DatabaseRefused, match="GRANT CREATE ON DATABASE"):
            async with started(dsn=empty_database.dsn_of("just_reads")):
                pass
        assert await schema_of(empty_database) == OLD[-1]
        empty_database.sql(f"GRANT CREATE ON DATABASE {empty_database.name} TO just_reads")
        async with started(dsn=empty_database.dsn_of("just_reads")) as service:
            assert names(await service.lister.list_topics(asking()))
    finally:
        empty_database.sql("DROP OWNED BY just_reads; DROP ROLE just_reads")


async def test_one_that_is_older_later(empty_database: Database) -> None:
    """As after restoring a backup of an older schema: the running server migrates it."""
    await migrate_dsn(empty_database.dsn)
    async with started(dsn=empty_database.dsn) as service:
        service.auto_migration._ended = float("-inf")  # as if half a minute had passed
        empty_database.sql("DROP SCHEMA broker_core CASCADE")
        await make_old(empty_database, OLD[-1])
        empty_database.server.sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            f"WHERE datname = '{empty_database.name}' AND pid <> pg_backend_pid()"
        )
        said: set[str] = set()

        async def served() -> bool:
            try:
                return bool(names(await service.lister.list_topics(asking())))
            except ListingFailed as failure:
                said.add(failure.message)
                return False

        assert await eventually(served, 60)
        assert await schema_of(empty_database) == NEWEST


async def test_a_newer_schema_that_readers_of_this_one_may_read(database: Database) -> None:
    database.sql(f"INSERT INTO broker_core.migrations VALUES ({NEWEST + 1}, 'next', 'x', now(), {NEWEST})")
    async with started(dsn=database.dsn) as service:
        assert (await service.lister.list_topics(asking())).is_pass_through
    async with database.connected() as connection:
        with pytest.raises(SchemaMismatch, match="upgrade broker-core-postgres"):
            await migrate_if_older(connection)
        assert await migrate_if_older(connection, reader=True) is None


async def test_a_database_that_was_never_migrated_is_left_alone(empty_database: Database) -> None:
    async with empty_database.connected() as connection:
        with pytest.raises(
            SchemaMismatch, match=r"no schema broker_core, .* run `broker-core postgres migrate`"
        ):
            await migrate_if_older(connection)
        assert not await connection.fetchval(
            "SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'broker_core%'"
        )


async def test_who_is_at_the_tables_for_too_long(empty_database: Database) -> None:
    await make_old(empty_database, OLD[-1])
    async with empty_database.connected() as connection, empty_database.connected() as other:
        async with other.transaction():
            await other.execute("SELECT broker_core.begin_change('acme/orders')")
            with pytest.raises(
                SchemaTooOld, match="It was not migrated by itself: Others have been at the topics"
            ):
                await migrate_if_older(connection, patience=0)
        done = present(await migrate_if_older(connection))
        assert f"kept in the schema broker_core_backup_{OLD[-1]}" in how_to_go_back(done)
        assert how_to_go_back(MigrationResult()) == "no backup was made"


@pytest.mark.parametrize(
    ("table", "there"),
    [
        ({}, True),
        ({"auto_migrate": False}, False),
        ({"relation": "own.topics"}, False),
        ({"prepared_statements": "off"}, False),
        ({"prepared_statements": "off", "listen_dsn": "postgresql://localhost/x"}, True),
    ],
    ids=["server", "off", "relation", "pooler", "behind a pooler"],
)
def test_where_a_server_migrates(table: dict[str, Any], there: bool) -> None:
    parameters = AutoMigration(PostgresSettings(dsn="postgresql://localhost/x", **table)).parameters()
    assert (parameters is not None) is there
