"""A part of the index of trigrams for the rows of one load, built after them, in a third of the time of filling it.

A row has the number of its part, and each part has an index of its own (migration 7). A large load takes a new number,
writes its rows, and builds their index, in one transaction. Readers wait for nothing, and always have an index of the
rows that they see. Writers of any namespace wait from the first row on. If other writers keep the table locked, there
is no new part, and the rows go into the existing index one by one.
"""

from __future__ import annotations

from typing import Any, Final

import asyncpg

__all__ = ["begin_part", "end_part"]

#: The longest wait for other writers.
_WRITERS_WAIT: Final = "2s"
#: Memory to build an index of a million names in one piece.
_MEMORY: Final = "256MB"
_BEGIN: Final = "SELECT broker_core.begin_trigram_part($1)"
_END: Final = "SELECT broker_core.end_trigram_part($1)"


async def begin_part(connection: Any, names: int) -> int:
    """The number of a new part for so many names. The transaction has written no rows yet.

    It is 0, the common part, if the load is too small, if there is no index, or if another writer does not end.
    """
    try:
        async with connection.transaction():
            patience = await connection.fetchval("SHOW lock_timeout")
            await connection.execute(f"SET LOCAL lock_timeout = '{_WRITERS_WAIT}'")
            part: int = await connection.fetchval(_BEGIN, names)
            await connection.execute(f"SET LOCAL lock_timeout = '{patience}'")
            return part
    except (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError):
        return 0


async def end_part(connection: Any, part: int) -> None:
    """Build the index of a part, after its rows and in the same transaction."""
    if part:
        await connection.execute(f"SET LOCAL maintenance_work_mem = '{_MEMORY}'")
        await connection.execute(_END, part)
