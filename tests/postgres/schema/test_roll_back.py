"""Migrating back: the older schema as it was, with the rows of the backup, and errors if that is not possible."""

from __future__ import annotations

import pytest

from broker_core_postgres.schema.migration_lock import MigrationFailed
from broker_core_postgres.schema.roll_back import migrate_back
from broker_core_postgres.schema.run_migrations import migrate
from broker_core_postgres.schema.schema_version import SchemaMismatch, check_schema, migrations
from tests.postgres.schema.old_schema import make_old, only_schema, rows_of
from tests.support.postgres_server import Database

NEWEST = len(migrations())
#: The definition of every object of the schema, and the privileges of each role.
DEFINED = (
    (
        "SELECT relname, relkind, relacl::text FROM pg_class WHERE relnamespace = 'broker_core'::regnamespace"
        " AND relname NOT LIKE 'topics_trigrams%' AND relname <> 'pg_stat_statements' ORDER BY 1"
    ),
    (
        "SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attgenerated, a.attidentity"
        " FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid WHERE c.relnamespace = 'broker_core'::regnamespace"
        " AND c.relkind IN ('r', 'v') AND a.attnum > 0 AND NOT a.attisdropped ORDER BY 1, 2"
    ),
    (
        "SELECT p.oid::regprocedure::text, pg_get_functiondef(p.oid), proacl::text FROM pg_proc p"
        " WHERE p.pronamespace = 'broker_core'::regnamespace AND p.prolang IN"
        " (SELECT oid FROM pg_language WHERE lanname IN ('sql', 'plpgsql')) ORDER BY 1"
    ),
    "SELECT tgname, tgenabled, pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal ORDER BY 1",
    (
        "SELECT indexdef FROM pg_indexes WHERE schemaname = 'broker_core' AND indexname NOT LIKE 'topics_trigrams%'"
        " ORDER BY 1"
    ),
    (
        "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint"
        " WHERE connamespace = 'broker_core'::regnamespace ORDER BY 1, 2"
    ),
    "SELECT number, name, checksum FROM broker_core.migrations ORDER BY 1",
)


@pytest.mark.parametrize("number", [5, 6, NEWEST - 1])
async def test_there_and_back(empty_database: Database, number: int) -> None:
    await make_old(empty_database, number)
    async with empty_database.connected() as connection:
        rows = await rows_of(connection)
        defined = [await connection.fetch(query) for query in DEFINED]
        catalogue = await connection.fetchval("SELECT id FROM broker_core.catalog")
        done = await migrate(connection)
        assert done.backup is not None
        assert (done.backup.schema, done.backup.number) == (f"broker_core_backup_{number}", number)
        assert await rows_of(connection) == rows, "a migration changes no row"
        await connection.execute("DELETE FROM broker_core.topics WHERE local_name = 'o-1'")
        asked = await migrate_back(connection, dry_run=True)
        assert (asked.left, asked.version, asked.kept) == (NEWEST, number, None)
        assert await check_schema(connection) == NEWEST
        back = await migrate_back(connection)
        assert back.kept is not None
        assert (back.version, back.kept.schema) == (number, f"broker_core_backup_{NEWEST}")
        assert await rows_of(connection) == rows
        assert [await connection.fetch(query) for query in DEFINED] == defined
        assert await connection.fetchval("SELECT id FROM broker_core.catalog") != catalogue
        with only_schema(number):
            assert await check_schema(connection) == number
        schemas = await connection.fetch(
            "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'broker_core_%'"
        )
        assert [name for (name,) in schemas] == [back.kept.schema], "one backup, of the last change"
        kept = f"SELECT count(*) FROM {back.kept.schema}.topics WHERE local_name = 'o-1'"
        assert await connection.fetchval(kept) == 0, "what was written since is kept"
        # It can be written, and its log continues.
        await connection.execute(
            "INSERT INTO broker_core.topics (namespace, local_name) VALUES ('acme/orders', 'z')"
        )
        new = await connection.fetchrow(
            "SELECT version, seq FROM broker_core.changes ORDER BY version DESC, seq DESC"
        )
        assert new["seq"] > max(row[2] for row in rows[2])
        with pytest.raises(MigrationFailed, match="nothing to go back to"):
            await migrate_back(connection)
        # And migrated forward again.
        assert (await migrate(connection)).version == NEWEST


async def test_without_a_backup(database: Database) -> None:
    async with database.connected() as connection:
        with pytest.raises(MigrationFailed, match="has no backup of an older schema"):
            await migrate_back(connection)


async def test_a_backup_of_another_build(empty_database: Database) -> None:
    await make_old(empty_database, NEWEST - 1)
    async with empty_database.connected() as connection:
        await migrate(connection)
        await connection.execute(
            f"UPDATE broker_core_backup_{NEWEST - 1}.migrations SET checksum = 'x' WHERE number = 3"
        )
        with pytest.raises(SchemaMismatch, match="with other statements"):
            await migrate_back(connection)


async def test_what_depends_on_the_tables_is_not_taken_away(empty_database: Database) -> None:
    await make_old(empty_database, NEWEST - 1)
    async with empty_database.connected() as connection:
        await migrate(connection)
        await connection.execute(
            'CREATE SCHEMA own; CREATE VIEW own."Mine" AS SELECT local_name FROM broker_core.topics;'
            'CREATE TABLE own.refers (namespace text COLLATE "C" REFERENCES broker_core.namespace_versions);'
            "CREATE TABLE own.computed (n text, m text DEFAULT broker_core.matched_of('x'));"
            "CREATE FUNCTION own.counted() RETURNS bigint LANGUAGE sql"
            " BEGIN ATOMIC SELECT count(*) FROM broker_core.topics; END"
        )
        with pytest.raises(MigrationFailed, match="would be dropped with them") as refused:
            await migrate_back(connection)
        message = str(refused.value)
        for other in ('view own."Mine"', "on table own.refers", "own.computed", "function own.counted()"):
            assert other in message
        assert await connection.fetchval('SELECT count(*) FROM own."Mine"') > 0
        await connection.execute("DROP SCHEMA own CASCADE")
        assert (await migrate_back(connection)).version == NEWEST - 1


async def test_who_uses_the_tables_is_waited_for(empty_database: Database) -> None:
    await make_old(empty_database, NEWEST - 1)
    async with empty_database.connected() as connection, empty_database.connected() as other:
        await migrate(connection)
        writer = other.transaction()
        await writer.start()
        await other.execute(
            "INSERT INTO broker_core.topics (namespace, local_name) VALUES ('acme/orders', 'late')"
        )
        with pytest.raises(MigrationFailed, match="Others have been at the topics for 0 seconds"):
            await migrate_back(connection, patience=0)
        await writer.commit()
        assert await check_schema(connection) == NEWEST
        assert (await migrate_back(connection)).version == NEWEST - 1
