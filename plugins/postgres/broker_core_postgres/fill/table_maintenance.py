"""Maintenance after many changes: ANALYZE, pending entries of indexes, VACUUM, and pruning of the change log."""

from __future__ import annotations

from typing import Any, Final

import asyncpg

__all__ = ["maintain_topics"]

#: Changed rows from which on VACUUM is worth its time; index-only scans need it.
_MANY: Final = 10_000


async def maintain_topics(connection: Any, changed: int) -> None:
    """ANALYZE the topics, update their indexes, prune old changes and tombstones; VACUUM after many changes.

    Nobody waits for it. PostgreSQL skips the VACUUM, with a warning, if the user does not own the table (from 17 on:
    lacks MAINTAIN on it); autovacuum does it later.
    """
    if not changed:
        return
    try:
        await connection.execute("SET statement_timeout = 0")
        await connection.execute("SELECT broker_core.tidy_topics()")
        await connection.execute("SELECT broker_core.prune_changes()")
        if changed >= _MANY:
            await connection.execute("VACUUM (SKIP_LOCKED) broker_core.topics")
        await connection.execute("RESET statement_timeout")
    except asyncpg.PostgresError:  # the topics are written; maintenance can come later
        return
