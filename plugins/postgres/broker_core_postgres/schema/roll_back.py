"""Migrating a database back: to the schema before its last migration, with the rows of the backup.

It is one transaction. The current rows become the new backup, everything in the schema is dropped, the migrations up to
the older schema run again, and the rows of the old backup are inserted without triggers. Extensions stay. The catalogue
gets a new id, since the versions that were given out since must not be compared with the next ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from broker_core_postgres.schema.backup import Backup, find_backup, make_backup, own_tables
from broker_core_postgres.schema.migration_lock import (
    PATIENCE,
    MigrationFailed,
    migration_lock,
    retry_while_locked,
)
from broker_core_postgres.schema.roles import check_owner, schema_owner
from broker_core_postgres.schema.run_migrations import apply_migration, check_server, make_migrations_table
from broker_core_postgres.schema.schema_version import (
    AppliedMigration,
    check_applied,
    migrations,
    read_applied,
)
from broker_core_postgres.schema.trigram_index import make_trigram_index

__all__ = ["MigratedBack", "migrate_back"]

#: Objects outside of this package that depend on its tables and would be dropped with them.
_OTHERS: Final = """WITH ours AS (
    SELECT 'pg_catalog.pg_class'::regclass AS class, c.oid FROM pg_catalog.pg_class c
        WHERE c.relnamespace = 'broker_core'::regnamespace
    UNION ALL SELECT 'pg_catalog.pg_proc'::regclass, p.oid FROM pg_catalog.pg_proc p
        WHERE p.pronamespace = 'broker_core'::regnamespace
)
SELECT DISTINCT CASE WHEN v.oid IS NOT NULL THEN 'view ' || v.oid::regclass
        ELSE pg_catalog.pg_describe_object(d.classid, d.objid, d.objsubid) END
FROM pg_catalog.pg_depend d
JOIN ours ON ours.class = d.refclassid AND ours.oid = d.refobjid
LEFT JOIN pg_catalog.pg_rewrite r ON d.classid = 'pg_catalog.pg_rewrite'::regclass AND r.oid = d.objid
LEFT JOIN pg_catalog.pg_class v ON v.oid = r.ev_class
LEFT JOIN pg_catalog.pg_constraint k ON d.classid = 'pg_catalog.pg_constraint'::regclass AND k.oid = d.objid
LEFT JOIN pg_catalog.pg_class t ON t.oid = k.conrelid
LEFT JOIN pg_catalog.pg_proc f ON d.classid = 'pg_catalog.pg_proc'::regclass AND f.oid = d.objid
LEFT JOIN pg_catalog.pg_attrdef a ON d.classid = 'pg_catalog.pg_attrdef'::regclass AND a.oid = d.objid
LEFT JOIN pg_catalog.pg_class w ON w.oid = a.adrelid
WHERE d.deptype = 'n'
    AND coalesce(v.relnamespace, t.relnamespace, f.pronamespace, w.relnamespace) <> 'broker_core'::regnamespace
ORDER BY 1"""
_DROP: Final = """SELECT 'DROP ' || CASE WHEN c.relkind = 'v' THEN 'VIEW' ELSE 'TABLE' END
        || ' IF EXISTS ' || c.oid::regclass || ' CASCADE'
    FROM pg_catalog.pg_class c
    WHERE c.relnamespace = 'broker_core'::regnamespace AND c.relkind IN ('r', 'p', 'v') AND NOT EXISTS (
        SELECT FROM pg_catalog.pg_depend d
        WHERE d.classid = 'pg_catalog.pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
UNION ALL
    SELECT 'DROP FUNCTION IF EXISTS ' || p.oid::regprocedure || ' CASCADE' FROM pg_catalog.pg_proc p
    WHERE p.pronamespace = 'broker_core'::regnamespace AND NOT EXISTS (
        SELECT FROM pg_catalog.pg_depend d
        WHERE d.classid = 'pg_catalog.pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e')"""
#: The columns of a table that are not generated, and which of them are identity columns.
_COLUMNS: Final = """SELECT pg_catalog.quote_ident(a.attname), a.attidentity <> '' FROM pg_catalog.pg_attribute a
    WHERE a.attrelid = $1::text::regclass AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
    ORDER BY a.attnum"""
#: The first schema with functions for the index of substrings; the `migrate` of older versions makes that index itself.
_MAKES_TRIGRAMS: Final = 7
#: The first schema with roles.
_HAS_ROLES: Final = 5


@dataclass(slots=True)
class MigratedBack:
    """The result of going back from schema ``left`` to ``version``, with the rows of ``used``.

    ``kept`` is the backup of the schema left, ``None`` in a dry run.
    """

    left: int
    version: int
    used: Backup
    kept: Backup | None = None


async def migrate_back(
    connection: Any,
    *,
    dry_run: bool = False,
    waiting: Callable[[], None] | None = None,
    patience: float = PATIENCE,
) -> MigratedBack:
    """Restore the backup. Servers of a version that migrates by itself must be stopped before.

    Raises :exc:`MigrationFailed` if there is no backup, if its schema is newer than this package, or if objects outside
    of this package depend on the tables.
    """
    await check_server(connection)
    found = await find_backup(connection)
    if found is None:
        raise MigrationFailed(
            "The database has no backup of an older schema: one is made when the schema is migrated, unless "
            "--no-backup is given"
        )
    applied = await read_applied(connection)
    done = MigratedBack(applied[-1].number if applied else 0, found.number, found)
    known = await _backed_up(connection, found)
    check_applied(known, partly=True)
    if done.left <= found.number:
        raise MigrationFailed(
            f"The backup is of schema {found.number}, and the database has schema {done.left}: nothing to go back to"
        )
    await check_owner(connection)
    others = [text for (text,) in await connection.fetch(_OTHERS)]
    if others:
        raise MigrationFailed(
            f"Objects of others depend on this plugin's tables, and would be dropped with them: {', '.join(others)}. "
            "Drop these, go back, and make them again"
        )
    if dry_run:
        return done
    owner = await schema_owner(connection)
    assert owner is not None

    async def work() -> None:
        why = f"before it went back to schema {found.number}"
        done.kept = await make_backup(connection, done.left, why, owner, keep=found)
        await connection.execute("SET LOCAL search_path = pg_catalog, pg_temp")
        for (statement,) in await connection.fetch(_DROP):
            await connection.execute(statement)
        await make_migrations_table(connection)
        for migration in migrations()[: found.number]:
            await apply_migration(connection, migration, owner)
        await _fill(connection, found.schema)
        await connection.execute(f"DROP SCHEMA {found.schema} CASCADE")
        await connection.execute("UPDATE broker_core.catalog SET id = gen_random_uuid()")
        if found.number >= _HAS_ROLES:
            await connection.execute("SELECT broker_core.grant_roles()")
        if found.number >= _MAKES_TRIGRAMS:
            await make_trigram_index(connection)
        await connection.execute("ANALYZE broker_core.topics")

    async with migration_lock(connection, waiting):
        await retry_while_locked(connection, work, patience)
    return done


async def _backed_up(connection: Any, backup: Backup) -> tuple[AppliedMigration, ...]:
    rows = await connection.fetch(
        f"SELECT number, name, checksum FROM {backup.schema}.migrations ORDER BY number"  # noqa: S608 - checked name
    )
    return tuple(AppliedMigration(*row) for row in rows)


async def _fill(connection: Any, schema: str) -> None:
    """Insert the rows of a backup, without triggers."""
    for table in await own_tables(connection):
        if table == '"migrations"':
            continue
        name = f"broker_core.{table}"
        columns = await connection.fetch(_COLUMNS, name)
        listed = ", ".join(column for column, _ in columns)
        await connection.execute(f"ALTER TABLE {name} DISABLE TRIGGER USER")
        await connection.execute(f"TRUNCATE {name}")
        await connection.execute(
            f"INSERT INTO {name} ({listed}) OVERRIDING SYSTEM VALUE SELECT {listed} FROM {schema}.{table}"  # noqa: S608
        )
        await connection.execute(f"ALTER TABLE {name} ENABLE TRIGGER USER")
        for column, counts in columns:
            if counts:
                highest = f"max({column})) FROM {name}"
                await connection.execute(
                    f"SELECT setval(pg_get_serial_sequence('{name}', '{column}'), {highest}"
                )
