"""One change of the schema at a time, while nobody is at its tables.

A change is one transaction, which needs the tables for itself. It asks for them for less time than PostgreSQL takes to
look for a deadlock, and begins anew: who writes or reads meanwhile never fails for its sake.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

import asyncpg

from broker_core.errors import BrokerCoreError

__all__ = ["PATIENCE", "MigrationFailed", "retry_while_locked", "with_migration_lock"]

#: Seconds that a change waits for others to be done with the tables, unless it is told otherwise.
PATIENCE: Final = 600.0
#: Of this package alone ("broker_core" in ASCII, cut to a bigint).
_LOCK: Final = 0x62726F6B65725F63
_PAUSE: Final = 0.25
# Less than deadlock_timeout, which is 1 s by default.
_LOCK_TIMEOUT: Final = "SET LOCAL lock_timeout = '500ms'; SET LOCAL statement_timeout = 0"


class MigrationFailed(BrokerCoreError):
    """The database could not be brought to the schema, and has the one that it had."""


async def with_migration_lock(
    connection: Any, run: Callable[[], Awaitable[None]], waiting: Callable[[], None] | None = None
) -> None:
    """Do what changes the schema, one at a time in a database. Raises :exc:`MigrationFailed`."""
    if not await connection.fetchval("SELECT pg_try_advisory_lock($1)", _LOCK):
        if waiting is not None:
            waiting()
        await connection.execute("SELECT pg_advisory_lock($1)", _LOCK)
    try:
        await run()
    except asyncpg.InsufficientPrivilegeError as error:
        raise MigrationFailed(
            f"The user may not do that: {error}. A migration needs the right to create in the database (GRANT "
            "CREATE ON DATABASE ... TO ...), or a member of the role that owns the schema broker_core"
        ) from None
    finally:
        if not connection.is_closed():
            await connection.execute("SELECT pg_advisory_unlock($1)", _LOCK)


async def retry_while_locked(connection: Any, work: Callable[[], Awaitable[None]], patience: float) -> None:
    """One transaction, begun anew for ``patience`` seconds while others are at the tables."""
    clock = asyncio.get_running_loop().time
    ends = clock() + patience
    while True:
        try:
            async with connection.transaction():
                await connection.execute(_LOCK_TIMEOUT)
                await work()
            return
        except (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError):
            if clock() >= ends:
                raise MigrationFailed(
                    f"Others have been at the topics for {patience:g} seconds (a load or a batch is under way): "
                    "nothing was changed; try again when they are done"
                ) from None
        await asyncio.sleep(_PAUSE)
