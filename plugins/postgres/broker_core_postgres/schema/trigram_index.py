"""The index for substrings: trigrams of names, by the extensions pg_trgm and btree_gin.

With btree_gin the index has the namespace too, so that rows of other namespaces are never read. Without it there is no
index: a substring among a million topics of other namespaces would cost as much as one in this namespace. Both
extensions are contrib modules of PostgreSQL and trusted: a user who may create in the database may create them.

The columns have the collation "POSIX", another name for the order "C". A condition with this collation can use this
index only, so the planner never reads the whole namespace instead (:mod:`..listing.listing_sql`).
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

#: ``namespace``: an index with namespaces. ``None`` stands for no index.
Trigrams = Literal["namespace"]

#: The extensions that the index needs.
EXTENSIONS: Final = ("pg_trgm", "btree_gin")
_READ: Final = """SELECT i.indpred IS NOT NULL FROM pg_catalog.pg_index i
    JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = 'broker_core' AND c.relname = 'topics_trigrams' AND i.indisvalid"""
_PARTS: Final = "SELECT low, high FROM broker_core.trigram_parts ORDER BY low"
_MERGE: Final = "SELECT broker_core.merge_trigram_parts()"

#: The parts of the index, each an index of its own, as inclusive ranges of their numbers.
IndexParts = tuple[tuple[int, int], ...]


async def read_trigram_index(connection: Any) -> Trigrams | None:
    """The kind of index that the database has."""
    return None if await connection.fetchval(_READ) is None else "namespace"


async def read_parts(connection: Any) -> IndexParts:
    """The parts of the index, in the transaction's snapshot (:mod:`..fill.trigram_part`)."""
    return tuple((low, high) for low, high in await connection.fetch(_PARTS))


async def create_extensions(connection: Any) -> dict[str, str]:
    """Create the extensions, if that is allowed. Returns the missing ones, each with the reason."""
    missing = {}
    for name in EXTENSIONS:
        try:
            async with connection.transaction():
                await connection.execute(f"CREATE EXTENSION IF NOT EXISTS {name} WITH SCHEMA broker_core")
        except asyncpg.PostgresError as error:
            missing[name] = str(error)
    return missing


async def make_trigram_index(connection: Any) -> Trigrams | None:
    """Make the index if both extensions exist, in the caller's transaction. The user owns the table.

    An index without parts, from a schema before the seventh, is made anew. That takes about as long as all other
    indexes together, and writers wait meanwhile.
    """
    if not await connection.fetchval(_READ) and not await connection.fetchval(_MERGE):
        return await read_trigram_index(connection)
    return "namespace"
