"""Bringing a database to the schema of this package: migrations, roles and the index of trigrams.

Each migration is one transaction; one run at a time, by an advisory lock. Running it again changes nothing. Everything
belongs to the role ``broker_core_migrator`` where there is one that the user is a member of, else to the user; who owns
the schema once keeps it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import asyncpg

from broker_core.errors import BrokerCoreError
from broker_core_postgres.dsn import connect
from broker_core_postgres.schema_version import (
    OLDEST_SERVER,
    Migration,
    check_applied,
    migrations,
    read_applied,
)
from broker_core_postgres.trigrams import EXTENSIONS, Trigrams, create_extensions, make_index, read_trigrams

__all__ = ["ROLES", "Migrated", "MigrationFailed", "migrate", "migrate_dsn"]

#: The roles and what they are for; none can log in: users are made members.
ROLES: Final = ("broker_core_reader", "broker_core_feeder", "broker_core_migrator")

#: Of this package alone ("broker_core" in ASCII, cut to a bigint).
_LOCK: Final = 0x62726F6B65725F63
_TABLE: Final = """CREATE TABLE broker_core.migrations (
    number integer PRIMARY KEY,
    name text NOT NULL,
    checksum text NOT NULL,
    applied timestamptz NOT NULL DEFAULT now()
)"""
_OWNER: Final = "SELECT nspowner::regrole::text FROM pg_catalog.pg_namespace WHERE nspname = 'broker_core'"


class MigrationFailed(BrokerCoreError):
    """The database could not be brought to the schema; it has every migration before the one that failed."""


@dataclass(slots=True)
class Migrated:
    """What a run did (or, dry, would do). ``missing`` says what could not be made and why, none of which is fatal."""

    applied: list[str] = field(default_factory=list)
    version: int = 0
    owner: str = ""
    trigrams: Trigrams | None = None
    missing: dict[str, str] = field(default_factory=dict)


async def migrate_dsn(dsn: str) -> Migrated:
    """:func:`migrate` with everything as by default, over a connection of its own."""
    connection = await connect(dsn, application_name="broker-core migrate")
    try:
        return await migrate(connection)
    finally:
        await connection.close()


async def migrate(
    connection: Any,
    *,
    dry_run: bool = False,
    trigrams: Literal["auto", "on", "off"] = "auto",
    retention: float | None = None,
    waiting: Callable[[], None] | None = None,
) -> Migrated:
    """Apply what is missing. ``retention`` is the age of changes that is kept from now on, in seconds (0: for ever).

    ``waiting`` is called where another run is under way, which is waited for. Raises :exc:`MigrationFailed`, and
    :exc:`~broker_core_postgres.schema_version.SchemaMismatch` for a database that is newer than this package.
    """
    await _check_server(connection)
    if dry_run:
        return await _pending(connection)
    if not await connection.fetchval("SELECT pg_try_advisory_lock($1)", _LOCK):
        if waiting is not None:
            waiting()
        await connection.execute("SELECT pg_advisory_lock($1)", _LOCK)
    try:
        done = Migrated()
        try:
            await _migrate(connection, done, trigrams, retention)
        except asyncpg.InsufficientPrivilegeError as error:
            raise MigrationFailed(
                f"The user may not do that: {error}. A migration needs the right to create in the database (GRANT "
                "CREATE ON DATABASE ... TO ...), or a member of the role that owns the schema broker_core"
            ) from None
        return done
    finally:
        if not connection.is_closed():
            await connection.execute("SELECT pg_advisory_unlock($1)", _LOCK)


async def _migrate(connection: Any, done: Migrated, trigrams: str, retention: float | None) -> None:
    await _check_owner(connection)
    check_applied(await read_applied(connection), partly=True)
    await _make_roles(connection, done)
    done.owner = await _owner(connection)
    if trigrams != "off":
        done.missing |= await create_extensions(connection)
        for name in EXTENSIONS:
            if trigrams == "on" and name in done.missing:
                raise MigrationFailed(
                    f'trigrams = "on", but the extension {name} cannot be created: {done.missing[name]}'
                )
    applied = await read_applied(connection)
    for migration in migrations()[len(applied) :]:
        await _apply(connection, migration, done.owner)
        done.applied.append(str(migration))
    done.version = migrations()[-1].number
    async with connection.transaction():
        await connection.execute(f"SET LOCAL ROLE {done.owner}")
        await connection.execute("SELECT broker_core.grant_roles()")
        if retention is not None:
            await connection.execute("SELECT broker_core.set_retention(make_interval(secs => $1))", retention)
        if trigrams != "off":
            done.trigrams = await make_index(connection)
        else:
            done.trigrams = await read_trigrams(connection)


async def _apply(connection: Any, migration: Migration, owner: str) -> None:
    try:
        async with connection.transaction():
            await connection.execute(f"SET LOCAL ROLE {owner}")
            await connection.execute("SET LOCAL search_path = pg_catalog, pg_temp")
            await connection.execute(migration.sql)
            await connection.execute(
                "INSERT INTO broker_core.migrations (number, name, checksum) VALUES ($1, $2, $3)",
                migration.number,
                migration.name,
                migration.checksum,
            )
    except asyncpg.InsufficientPrivilegeError:
        raise
    except asyncpg.PostgresError as error:
        raise MigrationFailed(
            f"Migration {migration} failed, and changed nothing: {type(error).__name__}: {error}"
        ) from error


async def _check_server(connection: Any) -> None:
    major = connection.get_server_version().major
    if major < OLDEST_SERVER:
        raise MigrationFailed(f"PostgreSQL {major} is too old: {OLDEST_SERVER} or later is needed")
    encoding = await connection.fetchval("SHOW server_encoding")
    if encoding != "UTF8":
        raise MigrationFailed(f"The database is encoded in {encoding}; names of topics need UTF8")
    if await connection.fetchval("SELECT pg_is_in_recovery()"):
        raise MigrationFailed("The server is a replica: migrate the primary")


async def _pending(connection: Any) -> Migrated:
    applied = await read_applied(connection)
    check_applied(applied, partly=True)
    owner = await connection.fetchval(_OWNER)
    return Migrated(
        [str(migration) for migration in migrations()[len(applied) :]],
        len(applied),
        owner or "",
        await read_trigrams(connection),
    )


def _becoming(connection: Any) -> str:
    """What ``pg_has_role`` calls the right to SET ROLE: from 16 on, who made a role is a member that may not."""
    return "SET" if connection.get_server_version().major >= 16 else "MEMBER"


async def _make_roles(connection: Any, done: Migrated) -> None:
    """Make the roles where this user may; without them everything works, for the owner alone."""
    for role in ROLES:
        if await connection.fetchval("SELECT to_regrole($1)::oid", role) is not None:
            continue
        try:
            async with connection.transaction():
                await connection.execute(f"CREATE ROLE {role} NOLOGIN")
        except (asyncpg.DuplicateObjectError, asyncpg.UniqueViolationError):
            continue  # by a migration of another database of this server, just now
        except asyncpg.InsufficientPrivilegeError as error:
            done.missing[role] = str(error)
    if await connection.fetchval("SELECT to_regrole('broker_core_migrator')::oid") is None:
        return
    if not await connection.fetchval("SELECT pg_has_role('broker_core_migrator', $1)", _becoming(connection)):
        try:
            async with connection.transaction():
                await connection.execute("GRANT broker_core_migrator TO CURRENT_USER")
        except asyncpg.PostgresError:
            return  # then the schema is the user's own


async def _check_owner(connection: Any) -> None:
    owner = await connection.fetchval(_OWNER)
    if owner is not None and not await connection.fetchval(
        "SELECT pg_has_role($1::regrole, $2)", owner, _becoming(connection)
    ):
        raise MigrationFailed(
            f"The schema broker_core belongs to {owner}: migrate as a member of that role (GRANT {owner} TO ...)"
        )


async def _owner(connection: Any) -> str:
    """Who owns the schema, quoted; schema and table of migrations are made where there are none."""
    owner: str | None = await connection.fetchval(_OWNER)
    async with connection.transaction():
        if owner is None:
            owner = await connection.fetchval(
                "SELECT CASE WHEN to_regrole('broker_core_migrator') IS NOT NULL"
                " AND pg_has_role('broker_core_migrator', $1)"
                " THEN 'broker_core_migrator' ELSE quote_ident(current_user) END",
                _becoming(connection),
            )
            await connection.execute(f"CREATE SCHEMA broker_core AUTHORIZATION {owner}")
        assert owner is not None
        await connection.execute(f"SET LOCAL ROLE {owner}")
        if await connection.fetchval("SELECT to_regclass('broker_core.migrations') IS NULL"):
            await connection.execute(_TABLE)
    return owner
