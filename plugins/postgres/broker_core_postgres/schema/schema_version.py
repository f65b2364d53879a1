"""Versions of the schema: that of a database, that of this package, and whether they fit.

Migrations are the files ``migrations/NNNN_name.sql``, numbered from 1 without gaps. The database records the numbers
and checksums of applied migrations in ``broker_core.migrations``.

A migration with the line ``-- Readable from schema N.`` leaves the database readable for readers of schema N and later.
The database records this too, so that a reader can use a newer schema than it knows. A writer needs exactly the schema
that it knows.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import asyncpg

from broker_core.errors import BrokerCoreError

__all__ = [
    "MIGRATE_COMMAND",
    "OLDEST_SERVER",
    "AppliedMigration",
    "SchemaMigration",
    "SchemaMismatch",
    "SchemaTooOld",
    "check_applied",
    "check_schema",
    "migrations",
    "read_applied",
]

#: The command that brings a database to the schema of this package.
MIGRATE_COMMAND: Final = "broker-core postgres migrate"
#: The oldest supported major version of PostgreSQL.
OLDEST_SERVER: Final = 14

_FOLDER: Final = Path(__file__).parent / "migrations"
_NAME: Final = re.compile(r"(\d{4})_([a-z0-9_]+)\.sql", re.ASCII)
_READABLE: Final = re.compile(r"^-- Readable from schema (\d+)\.$", re.MULTILINE)
# The column readable_from came with schema 8: to_jsonb(m) works without it too.
_READ: Final = """SELECT number, name, checksum, (to_jsonb(m) ->> 'readable_from')::integer
    FROM broker_core.migrations m ORDER BY number"""


class SchemaMismatch(BrokerCoreError):
    """The database's schema does not fit this package. The text says what to do."""


class SchemaTooOld(SchemaMismatch):
    """The database has an older schema, which can be migrated. ``found`` is its number, 1 or more."""

    def __init__(self, message: str, found: int) -> None:
        super().__init__(message)
        self.found = found


@dataclass(frozen=True, slots=True)
class SchemaMigration:
    """A migration file: its number, its name without number and ending, and its SQL."""

    number: int
    name: str
    sql: str

    @property
    def checksum(self) -> str:
        """SHA-256 of the SQL, with line feeds as line ends."""
        return hashlib.sha256(self.sql.encode()).hexdigest()

    @property
    def readable_from(self) -> int | None:
        """The oldest schema whose readers can read a database with this migration; ``None``: only its own."""
        said = _READABLE.search(self.sql)
        return None if said is None else int(said[1])

    def __str__(self) -> str:
        return f"{self.number:04} {self.name}"


@dataclass(frozen=True, slots=True)
class AppliedMigration:
    """A row of ``broker_core.migrations``."""

    number: int
    name: str
    checksum: str
    readable_from: int | None = None


@cache
def migrations() -> tuple[SchemaMigration, ...]:
    """The migrations of this package, by number."""
    found = []
    for path in sorted(_FOLDER.glob("*.sql")):
        parts = _NAME.fullmatch(path.name)
        assert parts is not None, path.name
        # Read with universal newlines, so that the checksum is equal on every system.
        found.append(SchemaMigration(int(parts[1]), parts[2], path.read_text(encoding="utf-8")))
    assert [each.number for each in found] == list(range(1, len(found) + 1)), (
        "a number is missing or there twice"
    )
    return tuple(found)


async def read_applied(connection: Any) -> tuple[AppliedMigration, ...]:
    """The migrations that were applied to the database; none if it was never migrated.

    Raises :exc:`SchemaMismatch` if the user may not read them.
    """
    try:
        rows = await connection.fetch(_READ)
    except (asyncpg.UndefinedTableError, asyncpg.InvalidSchemaNameError):
        return ()
    except asyncpg.InsufficientPrivilegeError as error:
        raise SchemaMismatch(
            f"The user may not read the schema broker_core ({error}): grant it the role broker_core_reader "
            "(or broker_core_feeder, to fill it)"
        ) from None
    return tuple(AppliedMigration(*row) for row in rows)


def check_applied(applied: Sequence[AppliedMigration], *, partly: bool = False, reader: bool = False) -> None:
    """Raise :exc:`SchemaMismatch` unless the applied migrations are this package's.

    ``partly`` allows fewer migrations. ``reader`` allows newer ones whose schema this package can read. Otherwise fewer
    migrations raise :exc:`SchemaTooOld`; none at all raise a plain :exc:`SchemaMismatch`.
    """
    ours = migrations()
    newer = applied[len(ours) :]
    if newer and not (
        reader and all(each.readable_from is not None and each.readable_from <= len(ours) for each in newer)
    ):
        raise SchemaMismatch(
            f"The database has schema {newer[-1].number}, and this version of broker-core-postgres knows "
            f"{len(ours)} only: upgrade broker-core-postgres, or take the database back to a schema that it knows "
            f"(`{MIGRATE_COMMAND} --back` of the newer version)"
        )
    for there, own in zip(applied, ours, strict=False):
        if (there.number, there.checksum) != (own.number, own.checksum):
            raise SchemaMismatch(
                f"Migration {there.number:04} {there.name} was applied to the database with other statements than "
                f"those of {own} in this version of broker-core-postgres: the two were not released together"
            )
    if partly or len(applied) >= len(ours):
        return
    if not applied:
        raise SchemaMismatch(
            f"The database has no schema broker_core, and schema {len(ours)} is needed: run `{MIGRATE_COMMAND}`"
        )
    raise SchemaTooOld(
        f"The database has schema {applied[-1].number}, and schema {len(ours)} is needed: run `{MIGRATE_COMMAND}`",
        applied[-1].number,
    )


async def check_schema(connection: Any, *, reader: bool = False) -> int:
    """The number of the database's schema. Raises :exc:`SchemaMismatch` like :func:`check_applied`."""
    applied = await read_applied(connection)
    check_applied(applied, reader=reader)
    return applied[-1].number
