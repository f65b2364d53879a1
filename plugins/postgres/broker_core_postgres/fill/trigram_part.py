"""A part of the index of trigrams for the rows of one load, made after them: in a third of the time of filling it.

A row says which part it is in, and each part has an index of its own, of those rows alone (migration 7). So a load that
is worth one takes a number that no index knows, writes its rows, and makes their index, all in its transaction: readers
have the index of what they see, before and after, and wait for nothing. Other writers wait from the first row on,
whatever their namespace; where they keep the table for long, there is no part, and the rows are written one by one.
"""

from __future__ import annotations

from typing import Any, Final

import asyncpg

__all__ = ["begin_part", "end_part"]

#: Other writers are waited for no longer.
_WRITERS_WAIT: Final = "2s"
#: An index of a million names is made in this much memory, instead of in several pieces that are joined.
_MEMORY: Final = "256MB"
_BEGIN: Final = "SELECT broker_core.begin_trigram_part($1)"
_END: Final = "SELECT broker_core.end_trigram_part($1)"


async def begin_part(connection: Any, names: int) -> int:
    """The part that so many names are to be written into, by a transaction that has written none yet.

    0 is the one that all others write into: where so few are better written one by one, where the index is missing, or
    where somebody else writes and does not end.
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
    """After the names, in the same transaction: make the index of their part."""
    if part:
        await connection.execute(f"SET LOCAL maintenance_work_mem = '{_MEMORY}'")
        await connection.execute(_END, part)
