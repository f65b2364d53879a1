"""The backup of a migration: a copy of all rows of the schema, in a schema of its own.

The copy is made in the transaction of the migration, of every table of ``broker_core``. Definitions are not copied,
since every version of this package has the migrations that make them. The copy is in the same database, so neither the
backup nor going back needs a program on the client's machine. A database keeps one backup; a new one replaces it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from broker_core_postgres.connect import quote_identifier

__all__ = ["Backup", "find_backup", "make_backup", "own_tables"]

_PREFIX: Final = "broker_core_backup_"
_NAME: Final = re.compile(rf"{_PREFIX}(\d{{1,9}})", re.ASCII)
#: Tables of the schema, without those of extensions.
_TABLES: Final = """SELECT c.relname::text FROM pg_catalog.pg_class c
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = 'broker_core' AND c.relkind IN ('r', 'p') AND NOT EXISTS (
        SELECT FROM pg_catalog.pg_depend d
        WHERE d.classid = 'pg_catalog.pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
    ORDER BY c.relname"""
_BACKUPS: Final = """SELECT n.nspname::text, pg_catalog.obj_description(n.oid, 'pg_namespace') AS said
    FROM pg_catalog.pg_namespace n WHERE n.nspname ^@ 'broker_core_backup_' ORDER BY n.nspname"""
_MAY_CREATE: Final = "SELECT pg_catalog.has_database_privilege(pg_catalog.current_database(), 'CREATE')"


@dataclass(frozen=True, slots=True)
class Backup:
    """Schema with the rows of schema ``number``. ``description`` says when and why it was made."""

    schema: str
    number: int
    description: str


async def own_tables(connection: Any) -> list[str]:
    """The tables of ``broker_core``, quoted."""
    return [quote_identifier(name) for (name,) in await connection.fetch(_TABLES)]


async def find_backup(connection: Any) -> Backup | None:
    """The database's backup, if it has one."""
    found = await _backups(connection)
    return found[-1] if found else None


async def make_backup(
    connection: Any, number: int, why: str, owner: str, *, keep: Backup | None = None
) -> Backup:
    """Copy all rows of schema ``number``, in the caller's transaction. Other writers wait from here on, readers do not.

    ``owner`` is the owner of the schema, quoted. The user or the owner needs the right to create in the database. All
    other backups but ``keep`` are dropped. The transaction goes on as the owner.
    """
    schema = f"{_PREFIX}{number}"
    create = await connection.fetchval(_MAY_CREATE)
    await connection.execute(f"SET LOCAL ROLE {owner}")
    tables = await own_tables(connection)
    locked = ", ".join(f"broker_core.{name}" for name in tables)
    await connection.execute(f"LOCK TABLE {locked} IN SHARE ROW EXCLUSIVE MODE")
    for each in await _backups(connection):
        if each != keep:
            await connection.execute(f"DROP SCHEMA {each.schema} CASCADE")
    if create:
        await connection.execute("SET LOCAL ROLE NONE")
    await connection.execute(f"CREATE SCHEMA {schema} AUTHORIZATION {owner}")
    await connection.execute(f"SET LOCAL ROLE {owner}")
    for name in tables:
        await connection.execute(f"CREATE TABLE {schema}.{name} AS TABLE broker_core.{name}")
    moment = await connection.fetchval(
        "SELECT to_char(transaction_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS \"UTC\"')"
    )
    description = f"schema {number} of broker_core at {moment}, {why}"
    await connection.execute(f"COMMENT ON SCHEMA {schema} IS '{description}'")
    return Backup(schema, number, description)


async def _backups(connection: Any) -> list[Backup]:
    found = []
    for name, description in await connection.fetch(_BACKUPS):
        parts = _NAME.fullmatch(name)
        if parts is not None:
            found.append(Backup(name, int(parts[1]), description or ""))
    return sorted(found, key=lambda each: each.number)
