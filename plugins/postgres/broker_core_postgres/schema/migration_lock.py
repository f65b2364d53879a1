"""The advisory lock of migrations, and waiting until the tables are free.

A change of the schema is one transaction that locks the tables. It waits for that lock for less time than PostgreSQL
takes to look for a deadlock, then starts again, so that no reader or writer fails because of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import asyncpg

from broker_core.errors import BrokerCoreError
from broker_core.quantities import counted

__all__ = ["PATIENCE", "MigrationFailed", "migration_lock", "retry_while_locked"]

#: Seconds to wait until the tables are free, by default.
PATIENCE: Final = 600.0
#: The key of the lock: "broker_core" in ASCII, cut to a bigint.
_LOCK: Final = 0x62726F6B65725F63
_PAUSE: Final = 0.25
# Shorter than deadlock_timeout, which is 1 s by default.
_LOCK_TIMEOUT: Final = "SET LOCAL lock_timeout = '500ms'; SET LOCAL statement_timeout = 0"


class MigrationFailed(BrokerCoreError):
    """The schema could not be changed. The database has the schema that it had."""


@asynccontextmanager
async def migration_lock(connection: Any, waiting: Callable[[], None] | None = None) -> AsyncIterator[None]:
    """The database's lock of migrations, for a block that changes the schema.

    ``waiting`` is called if another one has it, before waiting for it. Raises :exc:`MigrationFailed`.
    """
    if not await connection.fetchval("SELECT pg_try_advisory_lock($1)", _LOCK):
        if waiting is not None:
            waiting()
        await connection.execute("SELECT pg_advisory_lock($1)", _LOCK)
    try:
        yield
    except asyncpg.InsufficientPrivilegeError as error:
        raise MigrationFailed(
            f"The user may not do that: {error}. A migration needs the right to create in the database (GRANT "
            "CREATE ON DATABASE ... TO ...), or a member of the role that owns the schema broker_core"
        ) from None
    finally:
        if not connection.is_closed():
            await connection.execute("SELECT pg_advisory_unlock($1)", _LOCK)


async def retry_while_locked(connection: Any, work: Callable[[], Awaitable[None]], patience: float) -> None:
    """Run ``work`` in a transaction; start again for ``patience`` seconds while others lock the tables."""
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
                    f"Others have been at the topics for {counted(patience, 'second', spec='g')} (a load or "
                    "a batch is under way): "
                    "nothing was changed; try again when they are done"
                ) from None
        await asyncio.sleep(_PAUSE)
