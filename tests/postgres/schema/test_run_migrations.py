"""Migrations: applied once, in order and one at a time, with clear errors."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import asyncpg
import pytest

from broker_core_postgres.connect.open_connection import connect
from broker_core_postgres.schema.migration_lock import MigrationFailed
from broker_core_postgres.schema.roles import ROLES
from broker_core_postgres.schema.run_migrations import may_migrate, migrate
from broker_core_postgres.schema.schema_version import SchemaMigration, SchemaMismatch, migrations
from tests.postgres.schema.old_schema import make_old, rows_of
from tests.support.postgres_server import Database, PostgresServer, migrate_dsn

OURS = migrations()
NAMES = [str(each) for each in OURS]


async def test_an_empty_database_is_brought_to_the_schema(empty_database: Database) -> None:
    done = await migrate_dsn(empty_database.dsn)
    assert done.applied == NAMES
    assert (done.version, done.missing) == (len(NAMES), {})
    again = await migrate_dsn(empty_database.dsn)
    assert again.applied == []
    assert again.trigrams == done.trigrams == "namespace"


async def test_a_dry_run_changes_nothing(empty_database: Database) -> None:
    async with empty_database.connected() as connection:
        assert (await migrate(connection, dry_run=True)).applied == NAMES
        assert not await connection.fetchval(
            "SELECT count(*) FROM pg_namespace WHERE nspname = 'broker_core'"
        )
        await migrate(connection)
        assert (await migrate(connection, dry_run=True)).applied == []


async def test_several_at_once_wait_for_each_other(empty_database: Database) -> None:
    done = await asyncio.gather(*(migrate_dsn(empty_database.dsn) for _ in range(4)))
    assert sorted(len(each.applied) for each in done) == [0, 0, 0, len(NAMES)]


async def test_a_failing_migration_changes_nothing(
    empty_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = SchemaMigration(
        len(NAMES) + 1, "broken", "CREATE TABLE broker_core.half (i int); SELECT nonsense"
    )
    with monkeypatch.context() as patch:
        patch.setattr("broker_core_postgres.schema.run_migrations.migrations", lambda: (*OURS, broken))
        patch.setattr("broker_core_postgres.schema.schema_version.migrations", lambda: (*OURS, broken))
        with pytest.raises(
            MigrationFailed, match=f"{broken} failed, and nothing was changed: UndefinedColumnError"
        ):
            await migrate_dsn(empty_database.dsn)
    async with empty_database.connected() as connection:
        assert await connection.fetchval("SELECT count(*) FROM broker_core.migrations") == 0, (
            "the migrations of a run are one transaction"
        )
        assert await connection.fetchval("SELECT to_regclass('broker_core.half')") is None
        assert (await migrate(connection)).applied == NAMES


async def test_a_newer_or_another_database_is_refused(database: Database) -> None:
    newer = len(NAMES) + 1
    database.sql(f"INSERT INTO broker_core.migrations VALUES ({newer}, 'future', 'x')")
    with pytest.raises(SchemaMismatch, match="upgrade broker-core-postgres"):
        await migrate_dsn(database.dsn)
    database.sql(f"DELETE FROM broker_core.migrations WHERE number = {newer}")
    database.sql("UPDATE broker_core.migrations SET checksum = 'x' WHERE number = 2")
    with pytest.raises(
        SchemaMismatch, match="0002 triggers was applied to the database with other statements"
    ):
        await migrate_dsn(database.dsn)


async def test_nothing_is_backed_up_where_nothing_was(empty_database: Database, database: Database) -> None:
    assert (await migrate_dsn(empty_database.dsn)).backup is None
    assert (await migrate_dsn(database.dsn)).backup is None


async def test_without_a_backup(empty_database: Database) -> None:
    await make_old(empty_database, len(NAMES) - 1)
    async with empty_database.connected() as connection:
        done = await migrate(connection, backup=False)
        assert (done.applied, done.backup) == (NAMES[-1:], None)
        assert not await connection.fetchval(
            "SELECT count(*) FROM pg_namespace WHERE nspname LIKE '%backup%'"
        )


async def test_who_writes_is_waited_for_and_never_fails(empty_database: Database) -> None:
    await make_old(empty_database, len(NAMES) - 1)
    async with empty_database.connected() as connection, empty_database.connected() as other:
        writer = other.transaction()
        await writer.start()
        await other.execute("SELECT broker_core.begin_change('acme/orders')")
        with pytest.raises(MigrationFailed, match="Others have been at the topics for 0 seconds"):
            await migrate(connection, patience=0)
        migration = asyncio.create_task(migrate(connection))
        await other.execute(
            "INSERT INTO broker_core.topics (namespace, local_name) VALUES ('acme/orders', 'late')"
        )
        assert not migration.done()
        await writer.commit()
        done = await migration
        assert done.backup is not None
        kept = f"SELECT count(*) FROM {done.backup.schema}.topics WHERE local_name = 'late'"
        assert await connection.fetchval(kept) == 1


async def test_a_database_of_schema_5_with_topics_is_brought_to_the_newest(
    empty_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old index of trigrams covers all rows, and is made anew in parts."""
    with monkeypatch.context() as patch:
        for module in ("schema.run_migrations", "schema.schema_version"):
            patch.setattr(f"broker_core_postgres.{module}.migrations", lambda: OURS[:5])
        connection = await empty_database.connect()
        await migrate(connection, trigrams="off")
    try:
        await connection.execute(
            "CREATE EXTENSION pg_trgm SCHEMA broker_core; CREATE EXTENSION btree_gin SCHEMA broker_core;"
            " CREATE INDEX topics_trigrams ON broker_core.topics USING gin ("
            'namespace COLLATE "POSIX" broker_core.text_ops, matched COLLATE "POSIX" broker_core.gin_trgm_ops);'
            " INSERT INTO broker_core.topics (namespace, local_name)"
            " SELECT 'a/b', n::text FROM generate_series(1, 99) n"
        )
        before = await connection.fetch("SELECT * FROM broker_core.namespaces")
        done = await migrate(connection)
        assert (done.applied, done.trigrams) == ([str(each) for each in OURS[5:]], "namespace")
        (defined,) = await connection.fetch(
            "SELECT indexdef FROM pg_indexes WHERE indexname LIKE 'topics_trigrams%'"
        )
        assert defined["indexdef"].endswith("WHERE ((trigram_part >= 0) AND (trigram_part <= 0))")
        assert await connection.fetch("SELECT * FROM broker_core.namespaces") == before
        assert await connection.fetchval("SELECT count(*) FROM broker_core.topics") == 99
    finally:
        await connection.close()


async def test_a_load_that_was_killed_under_schema_5_left_no_index(
    empty_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        for module in ("schema.run_migrations", "schema.schema_version"):
            patch.setattr(f"broker_core_postgres.{module}.migrations", lambda: OURS[:5])
        connection = await empty_database.connect()
        await migrate(connection, trigrams="off")
    try:
        await connection.execute(
            "CREATE INDEX topics_trigrams ON broker_core.topics (namespace);"
            " SELECT broker_core.postpone_indexes(1000000)"
        )
        assert (await migrate(connection)).trigrams == "namespace"
        assert await connection.fetchval("SELECT to_regclass('broker_core.postponed_indexes')") is None
    finally:
        await connection.close()


@pytest.mark.parametrize("number", [2, 3, 4, 8, 9])
async def test_topics_of_every_schema_stay_and_get_no_configs(empty_database: Database, number: int) -> None:
    await make_old(empty_database, number)
    async with empty_database.connected() as connection:
        before = await rows_of(connection)
        await migrate(connection)
        assert await rows_of(connection) == before
        counted = "SELECT count(configs), count(replication), count(*) > 0 FROM broker_core.topics"
        assert tuple(await connection.fetchrow(counted)) == (0, 0, True)
        for wrong in ("configs = '[1]'", "replication = 0"):
            with pytest.raises(asyncpg.CheckViolationError):
                await connection.execute(f"UPDATE broker_core.topics SET {wrong}")


async def test_a_migration_whose_server_process_is_killed_changes_nothing(
    empty_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    await make_old(empty_database, len(NAMES) - 1)
    connection, other = await empty_database.connect(), await empty_database.connect()
    slow = SchemaMigration(OURS[-1].number, OURS[-1].name, OURS[-1].sql + "; SELECT pg_sleep(600)")
    asked = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'"
    try:
        before = await rows_of(other)
        with monkeypatch.context() as patch:
            patch.setattr("broker_core_postgres.schema.run_migrations.migrations", lambda: (*OURS[:-1], slow))
            migration = asyncio.create_task(migrate(connection))
            while (pid := await other.fetchval(asked)) is None:
                assert not migration.done()
            await other.execute("SELECT pg_terminate_backend($1)", pid)
            with pytest.raises(Exception, match=r"terminat|closed"):
                await migration
        assert await rows_of(other) == before
        assert await other.fetchval("SELECT max(number) FROM broker_core.migrations") == len(NAMES) - 1
        assert not await other.fetchval("SELECT count(*) FROM pg_namespace WHERE nspname LIKE '%backup%'")
        assert (await migrate(other)).applied == NAMES[-1:]
        assert await rows_of(other) == before
    finally:
        await connection.close()
        await other.close()


async def test_retention_comes_from_the_settings(database: Database) -> None:
    async with database.connected() as connection:
        age = "SELECT extract(epoch FROM age)::float8 FROM broker_core.retention"
        await migrate(connection, retention=60.0)
        assert await connection.fetchval(age) == 60
        await migrate(connection, retention=0.0)
        assert await connection.fetchval(age) is None


@pytest.fixture(scope="module")
def own_server() -> Any:
    """A server without the roles, which all its databases share."""
    with PostgresServer() as server:
        server.sql("CREATE ROLE plain LOGIN; CREATE ROLE maker LOGIN CREATEROLE; CREATE ROLE other LOGIN")
        yield server


async def test_without_the_right_to_make_roles_the_owner_has_all(own_server: PostgresServer) -> None:
    own_server.sql("CREATE DATABASE plain_db OWNER plain TEMPLATE template0")
    done = await migrate_dsn(own_server.dsn("plain_db", user="plain"))
    assert (done.owner, sorted(done.missing)) == ("plain", sorted(ROLES))
    connection = await asyncpg.connect(own_server.dsn("plain_db", user="plain"))
    try:
        await connection.execute("INSERT INTO broker_core.topics (namespace, local_name) VALUES ('a/b', 'x')")
        assert await connection.fetchval("SELECT version FROM broker_core.namespaces") == 1
    finally:
        await connection.close()
    # Roles that are created later are granted by the next run.
    own_server.sql("CREATE ROLE broker_core_reader; GRANT broker_core_reader TO other")
    try:
        assert sorted((await migrate_dsn(own_server.dsn("plain_db", user="plain"))).missing) == sorted(
            ROLES[1:]
        )
        other = await asyncpg.connect(own_server.dsn("plain_db", user="other"))
        assert await other.fetchval("SELECT count(*) FROM broker_core.topics") == 1
        await other.close()
    finally:
        own_server.sql("DROP OWNED BY broker_core_reader", database="plain_db")
        own_server.sql("DROP ROLE broker_core_reader")


async def test_no_right_to_create(own_server: PostgresServer) -> None:
    own_server.sql("CREATE DATABASE closed TEMPLATE template0")
    with pytest.raises(
        MigrationFailed, match=r"permission denied for database closed.*GRANT CREATE ON DATABASE"
    ):
        await migrate_dsn(own_server.dsn("closed", user="plain"))


async def test_the_schema_of_somebody_else(own_server: PostgresServer) -> None:
    own_server.sql("CREATE DATABASE taken TEMPLATE template0")
    own_server.sql("CREATE SCHEMA broker_core; ALTER SCHEMA broker_core OWNER TO other", database="taken")
    with pytest.raises(MigrationFailed, match="belongs to other: migrate as a member of that role"):
        await migrate_dsn(own_server.dsn("taken", user="plain"))


async def test_who_may_make_roles_makes_them(own_server: PostgresServer) -> None:
    own_server.sql("CREATE DATABASE made OWNER maker TEMPLATE template0")
    try:
        done = await migrate_dsn(own_server.dsn("made", user="maker"))
        assert (done.owner, done.missing) == ("broker_core_migrator", {})
        assert (await migrate_dsn(own_server.dsn("made", user="maker"))).applied == []
        for user, may in (("maker", True), ("plain", False)):
            connection = await connect(own_server.dsn("made", user=user))
            assert await may_migrate(connection) is may
            await connection.close()
    finally:
        own_server.sql("DROP DATABASE made")
        own_server.sql("".join(f"DROP ROLE {role};" for role in ROLES))


async def test_an_encoding_that_holds_no_names(own_server: PostgresServer) -> None:
    provider = "LOCALE_PROVIDER libc" if own_server.version >= 15 else ""  # older versions have libc only
    own_server.sql(f"CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C' {provider}")
    with pytest.raises(MigrationFailed, match="encoded in LATIN1"):
        await migrate_dsn(own_server.dsn("latin"))


async def test_a_replica_is_not_migrated(own_server: PostgresServer) -> None:
    with (
        contextlib.closing(own_server.start_replica()) as replica,
        pytest.raises(MigrationFailed, match="replica: migrate the primary"),
    ):
        await migrate_dsn(replica.dsn())


async def test_an_old_server(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("broker_core_postgres.schema.run_migrations.OLDEST_SERVER", 99)
    connection = await connect(database.dsn)
    try:
        with pytest.raises(MigrationFailed, match=r"PostgreSQL \d+ is too old: 99 or later"):
            await migrate(connection)
    finally:
        await connection.close()
