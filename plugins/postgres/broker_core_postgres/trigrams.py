"""The index for substrings: made of trigrams by the extension pg_trgm, where the database has it or may have it.

By btree_gin beside it the index knows the namespace too, so that rows of others are never looked at: without that one
there is no index, since a substring that a million topics of others have would cost as much as these. Both come with
PostgreSQL's own contrib modules, and are trusted: who may create in the database may create them.

Its columns have the collation "POSIX", another name for the order "C": a condition that says so is for this index
alone, and never makes the planner read the whole namespace instead (see ``statements``).
"""

from __future__ import annotations

from typing import Any, Final, Literal

import asyncpg

__all__ = ["EXTENSIONS", "INDEX", "Trigrams", "create_extensions", "make_index", "read_trigrams"]

#: The name of the index, in the schema ``broker_core``.
INDEX: Final = "topics_trigrams"

#: ``namespace``: the index has namespaces too; ``None`` stands for no index.
Trigrams = Literal["namespace"]

#: What the index is made of.
EXTENSIONS: Final = ("pg_trgm", "btree_gin")
_READ: Final = """SELECT true FROM pg_catalog.pg_index i
    JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = 'broker_core' AND c.relname = 'topics_trigrams' AND i.indisvalid"""
_MAY_BE_POSTPONED: Final = "SELECT to_regclass('broker_core.postponed_indexes') IS NOT NULL"
_POSTPONED: Final = "SELECT EXISTS (SELECT FROM broker_core.postponed_indexes)"
_SCHEMA_OF: Final = """SELECT pg_catalog.quote_ident(n.nspname) FROM pg_catalog.pg_extension e
    JOIN pg_catalog.pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = $1"""


async def read_trigrams(connection: Any) -> Trigrams | None:
    """Which index there is, or will be when a load is done that makes it of its rows (:mod:`.postponed`)."""
    if await connection.fetchval(_READ):
        return "namespace"
    postponed = await connection.fetchval(_MAY_BE_POSTPONED) and await connection.fetchval(_POSTPONED)
    return "namespace" if postponed else None


async def create_extensions(connection: Any) -> dict[str, str]:
    """Create the extensions where that is allowed; what is missing, with the reason."""
    missing = {}
    for name in EXTENSIONS:
        try:
            async with connection.transaction():
                await connection.execute(f"CREATE EXTENSION IF NOT EXISTS {name} WITH SCHEMA broker_core")
        except asyncpg.PostgresError as error:
            missing[name] = str(error)
    return missing


async def make_index(connection: Any) -> Trigrams | None:
    """Make the index where both extensions are, within the caller's transaction; the user owns the table.

    It takes about as long as all other indexes together, and writers wait meanwhile.
    """
    found = await read_trigrams(connection)
    trgm, gin = [await connection.fetchval(_SCHEMA_OF, name) for name in EXTENSIONS]
    if found is not None or trgm is None or gin is None:
        return found
    await connection.execute(f"DROP INDEX IF EXISTS broker_core.{INDEX}")
    await connection.execute(
        f"CREATE INDEX {INDEX} ON broker_core.topics"
        f' USING gin (namespace COLLATE "POSIX" {gin}.text_ops, matched COLLATE "POSIX" {trgm}.gin_trgm_ops)'
    )
    return "namespace"
