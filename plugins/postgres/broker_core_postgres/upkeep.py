"""After many topics changed: what the planner believes, what indexes left for later, and what is past by now."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import asyncpg

__all__ = ["refresh_statistics", "sorting_in"]

#: From so many changed rows on, VACUUM is worth its time: scans of an index alone need it.
_MANY: Final = 10_000
#: Seconds between two looks at what is to be sorted in: each takes what a writer added meanwhile.
_PAUSE: Final = 0.3


async def refresh_statistics(connection: Any, changed: int) -> None:
    """ANALYZE the topics and empty the pending lists of their indexes; VACUUM where many changed. Nobody waits for it.

    And let go of changes and tombstones that are older than the retention says.

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


@asynccontextmanager
async def sorting_in(connect: Callable[[], Awaitable[Any]] | None, rows: int) -> AsyncIterator[None]:
    """While a writer adds so many rows within this context, sort them into the indexes on a second connection.

    The writer only appends to their lists of pending entries, if it lets these grow (``gin_pending_list_limit``), and
    another processor sorts. It is a help only: that it fails is no failure of the writer's.
    """
    if connect is None or rows < _MANY:
        yield
        return
    task = asyncio.create_task(_sort_in(connect))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _sort_in(connect: Callable[[], Awaitable[Any]]) -> None:
    connection = await connect()
    try:
        await connection.execute("SET work_mem = '128MB'")
        while True:
            await connection.execute("SELECT broker_core.sort_pending()")
            await asyncio.sleep(_PAUSE)
    finally:
        connection.terminate()
