"""The index for substrings: made of trigrams by the extension pg_trgm, where the database has it or may have it.

With btree_gin beside it (both come with PostgreSQL's own contrib modules, and are trusted: who may create in the
database may create them) the index knows the namespace too, so that rows of others are never looked at.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import asyncpg

__all__ = ["INDEX", "Trigrams", "make_index", "read_trigrams"]

#: The name of the index, in the schema ``broker_core``.
INDEX: Final = "topics_trigrams"

#: ``namespace``: the index has namespaces too; ``matched``: names alone; ``None``: there is none.
Trigrams = Literal["namespace", "matched"]

_EXTENSIONS: Final = ("pg_trgm", "btree_gin")
_READ: Final = """SELECT i.indnatts FROM pg_catalog.pg_index i
    JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = 'broker_core' AND c.relname = 'topics_trigrams' AND i.indisvalid"""
_SCHEMA_OF: Final = """SELECT pg_catalog.quote_ident(n.nspname) FROM pg_catalog.pg_extension e
    JOIN pg_catalog.pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = $1"""


async def read_trigrams(connection: Any) -> Trigrams | None:
    """Which index there is."""
    columns = await connection.fetchval(_READ)
    return None if columns is None else "namespace" if columns > 1 else "matched"


async def create_extensions(connection: Any) -> dict[str, str]:
    """Create the extensions where that is allowed; what is missing, with the reason."""
    missing = {}
    for name in _EXTENSIONS:
        try:
            async with connection.transaction():
                await connection.execute(f"CREATE EXTENSION IF NOT EXISTS {name} WITH SCHEMA broker_core")
        except asyncpg.PostgresError as error:
            missing[name] = str(error)
    return missing


async def make_index(connection: Any) -> Trigrams | None:
    """Make the index of the extensions that there are, within the caller's transaction; the user owns the table.

    It takes about as long as all other indexes together, and writers wait meanwhile.
    """
    found = await read_trigrams(connection)
    trgm = await connection.fetchval(_SCHEMA_OF, "pg_trgm")
    gin = await connection.fetchval(_SCHEMA_OF, "btree_gin")
    if trgm is None or found == "namespace" or (found == "matched" and gin is None):
        return found
    first = "" if gin is None else f"namespace {gin}.text_ops, "
    await connection.execute(f"DROP INDEX IF EXISTS broker_core.{INDEX}")
    await connection.execute(
        f"CREATE INDEX {INDEX} ON broker_core.topics USING gin ({first}matched {trgm}.gin_trgm_ops)"
    )
    return "matched" if gin is None else "namespace"
