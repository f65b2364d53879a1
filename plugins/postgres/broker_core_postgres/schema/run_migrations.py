"""Migrating a database to the schema of this package: its migrations, roles and index of trigrams.

An advisory lock allows one migration at a time. Its steps and the backup (:mod:`.backup`) are one transaction. A second
run changes nothing. The owner of a new schema is the role ``broker_core_migrator`` if the user is a member of it, else
the user; an existing schema keeps its owner.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import asyncpg

from broker_core_postgres.schema.backup import Backup, make_backup
from broker_core_postgres.schema.migration_lock import (
    PATIENCE,
    MigrationFailed,
    migration_lock,
    retry_while_locked,
)
from broker_core_postgres.schema.roles import check_owner, create_roles, schema_owner, set_role_privilege
from broker_core_postgres.schema.schema_version import (
    OLDEST_SERVER,
    SchemaMigration,
    check_applied,
    migrations,
    read_applied,
)
from broker_core_postgres.schema.trigram_index import (
    EXTENSIONS,
    Trigrams,
    create_extensions,
    make_trigram_index,
    read_trigram_index,
)

__all__ = [
    "MigrationResult",
    "apply_migration",
    "check_server",
    "make_migrations_table",
    "may_migrate",
    "migrate",
]

_TABLE: Final = """CREATE TABLE broker_core.migrations (
    number integer PRIMARY KEY,
    name text NOT NULL,
    checksum text NOT NULL,
    applied timestamptz NOT NULL DEFAULT now()
)"""
_MAY_CREATE: Final = """SELECT has_database_privilege(current_database(), 'CREATE')
    OR has_database_privilege($1::text::regrole, current_database(), 'CREATE')"""


@dataclass(slots=True)
class MigrationResult:
    """The steps of a migration, done or in a dry run to be done. ``missing`` has the objects that could not be made,
    with the reason.

    Nothing that is missing is fatal. ``backup`` is the copy of the former rows, if there were any and a migration ran.
    """

    applied: list[str] = field(default_factory=list)
    backup: Backup | None = None
    version: int = 0
    owner: str = ""
    trigrams: Trigrams | None = None
    missing: dict[str, str] = field(default_factory=dict)


async def migrate(
    connection: Any,
    *,
    dry_run: bool = False,
    trigrams: Literal["auto", "on", "off"] = "auto",
    retention: float | None = None,
    backup: bool = True,
    waiting: Callable[[], None] | None = None,
    patience: float = PATIENCE,
) -> MigrationResult:
    """Apply the missing migrations. ``retention`` sets how long changes are kept, in seconds (0: for ever).

    ``waiting`` is called if another migration is running, before waiting for it. ``patience`` is how many seconds to
    wait for users of the tables. Raises :exc:`MigrationFailed`, and :exc:`.SchemaMismatch` for a database that is newer
    than this package.
    """
    await check_server(connection)
    if dry_run:
        return await _pending(connection)
    done = MigrationResult()

    async with migration_lock(connection, waiting):
        await _migrate(connection, done, trigrams, retention, backup=backup, patience=patience)
    return done


async def _migrate(
    connection: Any,
    done: MigrationResult,
    trigrams: str,
    retention: float | None,
    *,
    backup: bool,
    patience: float,
) -> None:
    await check_owner(connection)
    check_applied(await read_applied(connection), partly=True)
    done.missing |= await create_roles(connection)
    owner = done.owner = await _owner(connection)
    if trigrams != "off":
        done.missing |= await create_extensions(connection)
        for name in EXTENSIONS:
            if trigrams == "on" and name in done.missing:
                raise MigrationFailed(
                    f'trigrams = "on", but the extension {name} cannot be created: {done.missing[name]}'
                )
    applied = await read_applied(connection)
    pending = migrations()[len(applied) :]

    async def apply() -> None:
        if applied and backup:
            why = f"before schema {pending[-1].number}"
            try:
                done.backup = await make_backup(connection, applied[-1].number, why, owner)
            except asyncpg.InsufficientResourcesError as error:
                raise MigrationFailed(
                    f"There is no room for the backup, and nothing was changed: {error}"
                ) from None
        for migration in pending:
            await apply_migration(connection, migration, owner)

    if pending:
        await retry_while_locked(connection, apply, patience)
        done.applied += map(str, pending)
    done.version = migrations()[-1].number
    async with connection.transaction():
        await connection.execute(f"SET LOCAL ROLE {owner}")
        await connection.execute("SELECT broker_core.grant_roles()")
        if retention is not None:
            await connection.execute("SELECT broker_core.set_retention(make_interval(secs => $1))", retention)
        if trigrams != "off":
            done.trigrams = await make_trigram_index(connection)
        else:
            done.trigrams = await read_trigram_index(connection)


async def apply_migration(connection: Any, migration: SchemaMigration, owner: str) -> None:
    """Run a migration as ``owner`` in the caller's transaction, and record it.

    Raises :exc:`MigrationFailed`.
    """
    try:
        await connection.execute(f"SET LOCAL ROLE {owner}")
        await connection.execute("SET LOCAL search_path = pg_catalog, pg_temp")
        await connection.execute(migration.sql)
        await connection.execute(
            "INSERT INTO broker_core.migrations (number, name, checksum) VALUES ($1, $2, $3)",
            migration.number,
            migration.name,
            migration.checksum,
        )
        if migration.readable_from is not None:
            await connection.execute(
                "UPDATE broker_core.migrations SET readable_from = $2 WHERE number = $1",
                migration.number,
                migration.readable_from,
            )
    except (asyncpg.InsufficientPrivilegeError, asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError):
        raise
    except asyncpg.PostgresError as error:
        raise MigrationFailed(
            f"Migration {migration} failed, and nothing was changed: {type(error).__name__}: {error}"
        ) from error


async def check_server(connection: Any) -> None:
    """Raise :exc:`MigrationFailed` for a server that is too old, a replica, or not encoded in UTF-8."""
    major = connection.get_server_version().major
    if major < OLDEST_SERVER:
        raise MigrationFailed(f"PostgreSQL {major} is too old: {OLDEST_SERVER} or later is needed")
    encoding = await connection.fetchval("SHOW server_encoding")
    if encoding != "UTF8":
        raise MigrationFailed(f"The database is encoded in {encoding}; names of topics need UTF8")
    if await connection.fetchval("SELECT pg_is_in_recovery()"):
        raise MigrationFailed("The server is a replica: migrate the primary")


async def _pending(connection: Any) -> MigrationResult:
    applied = await read_applied(connection)
    check_applied(applied, partly=True)
    owner = await schema_owner(connection)
    return MigrationResult(
        [str(migration) for migration in migrations()[len(applied) :]],
        version=len(applied),
        owner=owner or "",
        trigrams=await read_trigram_index(connection),
    )


async def _owner(connection: Any) -> str:
    """The owner of the schema, quoted. Creates the schema and its table of migrations if they are missing."""
    owner = await schema_owner(connection)
    async with connection.transaction():
        if owner is None:
            owner = await connection.fetchval(
                "SELECT CASE WHEN to_regrole('broker_core_migrator') IS NOT NULL"
                " AND pg_has_role('broker_core_migrator', $1)"
                " THEN 'broker_core_migrator' ELSE quote_ident(current_user) END",
                set_role_privilege(connection),
            )
            await connection.execute(f"CREATE SCHEMA broker_core AUTHORIZATION {owner}")
        assert owner is not None
        await connection.execute(f"SET LOCAL ROLE {owner}")
        if await connection.fetchval("SELECT to_regclass('broker_core.migrations') IS NULL"):
            await make_migrations_table(connection)
    return owner


async def may_migrate(connection: Any) -> bool:
    """Whether the user may migrate the existing schema, backup included."""
    try:
        await check_server(connection)
        await check_owner(connection)
    except MigrationFailed:
        return False
    return bool(await connection.fetchval(_MAY_CREATE, await schema_owner(connection)))


async def make_migrations_table(connection: Any) -> None:
    """Create the table of applied migrations, as the owner and in the caller's transaction."""
    await connection.execute(_TABLE)
