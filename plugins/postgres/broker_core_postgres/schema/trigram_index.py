"""The index for substrings: made of trigrams by the extension pg_trgm, where the database has it or may have it.

By btree_gin beside it the index knows the namespace too, so that rows of others are never looked at: without that one
there is no index, since a substring that a million topics of others have would cost as much as these. Both come with
PostgreSQL's own contrib modules, and are trusted: who may create in the database may create them.

Its columns have the collation "POSIX", another name for the order "C": a condition that says so is for this index
alone, and never makes the planner read the whole namespace instead (see ``listing_sql``).
"""

from __future__ import annotations

from typing import Any, Final, Literal

import asyncpg

__all__ = [
    "EXTENSIONS",
    "IndexParts",
    "Trigrams",
    "create_extensions",
    "make_trigram_index",
    "read_parts",
    "read_trigram_index",
]

#: ``namespace``: the index has namespaces too; ``None`` stands for no index.
Trigrams = Literal["namespace"]

#: What the index is made of.
EXTENSIONS: Final = ("pg_trgm", "btree_gin")
_READ: Final = """SELECT i.indpred IS NOT NULL FROM pg_catalog.pg_index i
    JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = 'broker_core' AND c.relname = 'topics_trigrams' AND i.indisvalid"""
_PARTS: Final = "SELECT low, high FROM broker_core.trigram_parts ORDER BY low"
_MERGE: Final = "SELECT broker_core.merge_trigram_parts()"

#: The parts that the index is in, each with an index of its own, as ranges of their numbers, both ends included.
IndexParts = tuple[tuple[int, int], ...]


async def read_trigram_index(connection: Any) -> Trigrams | None:
    """Which index there is."""
    return None if await connection.fetchval(_READ) is None else "namespace"


async def read_parts(connection: Any) -> IndexParts:
    """The parts of the rows that the snapshot of the transaction sees (:mod:`..fill.trigram_part`)."""
    return tuple((low, high) for low, high in await connection.fetch(_PARTS))


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


async def make_trigram_index(connection: Any) -> Trigrams | None:
    """Make the index where both extensions are, within the caller's transaction; the user owns the table.

    One that is not in parts, of a schema before the seventh, is made anew. It takes about as long as all other indexes
    together, and writers wait meanwhile.
    """
    if not await connection.fetchval(_READ) and not await connection.fetchval(_MERGE):
        return await read_trigram_index(connection)
    return "namespace"
