"""After many topics changed: what the planner believes, what indexes left for later, and what is past by now."""

from __future__ import annotations

from typing import Any, Final

import asyncpg

__all__ = ["maintain_topics"]

#: From so many changed rows on, VACUUM is worth its time: scans of an index alone need it.
_MANY: Final = 10_000


async def maintain_topics(connection: Any, changed: int) -> None:
    """ANALYZE the topics and bring their indexes up to date; VACUUM where many changed. Nobody waits for it.

    And let go of changes and tombstones that are past the retention.

    PostgreSQL skips the VACUUM, with a warning, for a user that does not own the table (from 17 on: has no MAINTAIN on
    it); its own autovacuum does it some time later.
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
    except asyncpg.PostgresError:  # the topics are written: that this failed is no failure of theirs
        return
