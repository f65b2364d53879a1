"""Which schema a database has, which one this package needs, and whether they fit.

Migrations are the files ``migrations/NNNN_name.sql``, numbered from 1 without a hole. The database keeps the numbers
and the checksums of those that were applied in ``broker_core.migrations``.
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
    "MIGRATE",
    "OLDEST_SERVER",
    "Applied",
    "Migration",
    "SchemaMismatch",
    "check_applied",
    "check_schema",
    "migrations",
    "read_applied",
]

#: What to run where a database is not what this package needs.
MIGRATE: Final = "broker-core postgres migrate"
#: The oldest major version of the server.
OLDEST_SERVER: Final = 14

_FOLDER: Final = Path(__file__).parent / "migrations"
_NAME: Final = re.compile(r"(\d{4})_([a-z0-9_]+)\.sql", re.ASCII)
_READ: Final = "SELECT number, name, checksum FROM broker_core.migrations ORDER BY number"


class SchemaMismatch(BrokerCoreError):
    """The database has not the schema that this package needs; the text says what to do."""


@dataclass(frozen=True, slots=True)
class Migration:
    """One file: its number, its name without number and ending, and its statements."""

    number: int
    name: str
    sql: str

    @property
    def checksum(self) -> str:
        """SHA-256 of the statements, whatever the ends of lines are."""
        return hashlib.sha256(self.sql.encode()).hexdigest()

    def __str__(self) -> str:
        return f"{self.number:04} {self.name}"


@dataclass(frozen=True, slots=True)
class Applied:
    """One row of ``broker_core.migrations``."""

    number: int
    name: str
    checksum: str


@cache
def migrations() -> tuple[Migration, ...]:
    """The migrations of this package, by number."""
    found = []
    for path in sorted(_FOLDER.glob("*.sql")):
        parts = _NAME.fullmatch(path.name)
        assert parts is not None, path.name
        # Universal newlines: a checkout on another system has the same checksums.
        found.append(Migration(int(parts[1]), parts[2], path.read_text(encoding="utf-8")))
    assert [each.number for each in found] == list(range(1, len(found) + 1)), (
        "a number is missing or there twice"
    )
    return tuple(found)


async def read_applied(connection: Any) -> tuple[Applied, ...]:
    """What was applied to this database; nothing where it was never migrated.

    Raises :exc:`SchemaMismatch` where the user may not look.
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
    return tuple(Applied(*row) for row in rows)


def check_applied(applied: Sequence[Applied], *, partly: bool = False) -> None:
    """Raise a :exc:`SchemaMismatch` unless these are the migrations of this package; with ``partly`` the first ones."""
    ours = migrations()
    if len(applied) > len(ours):
        raise SchemaMismatch(
            f"The database has schema {applied[-1].number}, and this version of broker-core-postgres knows "
            f"{ours[-1].number} only: upgrade broker-core-postgres (a schema never goes back)"
        )
    for there, own in zip(applied, ours, strict=False):
        if (there.number, there.checksum) != (own.number, own.checksum):
            raise SchemaMismatch(
                f"Migration {there.number:04} {there.name} was applied to the database with other statements than "
                f"those of {own} in this version of broker-core-postgres: the two were not released together"
            )
    if not partly and len(applied) < len(ours):
        has = f"schema {applied[-1].number}" if applied else "no schema broker_core"
        raise SchemaMismatch(
            f"The database has {has}, and schema {ours[-1].number} is needed: run `{MIGRATE}`"
        )


async def check_schema(connection: Any) -> int:
    """The number of the schema, if it is the one that this package needs; else a :exc:`SchemaMismatch`."""
    applied = await read_applied(connection)
    check_applied(applied)
    return applied[-1].number
