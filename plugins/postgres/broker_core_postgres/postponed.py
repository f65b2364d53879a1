"""The index of trigrams made after the rows of a first load, instead of filled row by row: in a third of the time.

Only where the database has no topics yet: nobody can miss the index then. A second connection lets go of it, in a
transaction of its own that is over at once (readers wait for half a second at most), and the load makes it again in the
transaction of its rows. Other writers wait for the load, whatever their namespace. What will be made is written down in
the database, so that whoever comes next makes it should the load not come to its end: the load itself, another one,
``sync`` or ``migrate``.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable
from typing import Any, Final, Self

from broker_core.errors import BrokerCoreError
from broker_core_postgres.failures import DRIVER_ERRORS

__all__ = ["PostponedIndexes"]

#: Readers wait no longer, and then nothing is postponed.
_READERS_WAIT: Final = "500ms"
#: Other writers are waited for no longer.
_WRITERS_WAIT: Final = "2s"
#: An index of a million names is made in this much memory, instead of in several parts that are joined.
_MEMORY: Final = "256MB"
_LOCK: Final = "LOCK TABLE broker_core.topics IN SHARE ROW EXCLUSIVE MODE"
_ERRORS: Final = (*DRIVER_ERRORS, BrokerCoreError)  # the latter: it cannot connect
#: Fewer names are written row by row: ``broker_core.postpone_indexes`` says the same.
_MANY: Final = 40_000
_MAKE: Final = "SELECT broker_core.make_postponed_indexes()"


class PostponedIndexes:
    """What one load postpones; a context around its transaction.

    ``connect`` makes the second connection (without it nothing is postponed). It is a help only: that it cannot be had,
    or that others keep the table locked, is no failure of the load's.
    """

    def __init__(self, connect: Callable[[], Awaitable[Any]] | None) -> None:
        self._connect = connect
        self._second: Any = None
        self._postponed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_exception: object) -> None:
        try:
            await self._restore()
        finally:
            if self._second is not None:
                self._second.terminate()

    async def postpone(self, connection: Any, names: int) -> None:
        """Before so many names are written by the transaction of ``connection``, which has not touched topics yet."""
        if self._connect is None or names < _MANY:
            return
        try:
            self._second = await self._connect()
            await self._second.execute(f"SET lock_timeout = '{_READERS_WAIT}'")
            self._postponed = await self._second.fetchval("SELECT broker_core.postpone_indexes($1)", names)
            if self._postponed:
                async with connection.transaction():
                    await connection.execute(f"SET LOCAL lock_timeout = '{_WRITERS_WAIT}'")
                    # From here on nobody else writes, so that to make the index later waits for nobody.
                    await connection.execute(_LOCK)
        except _ERRORS:
            if connection.is_closed():
                raise
            await self._restore()

    async def make(self, connection: Any) -> None:
        """After the names, in the same transaction."""
        if self._postponed:
            await connection.execute(f"SET LOCAL maintenance_work_mem = '{_MEMORY}'")
            await connection.execute(_MAKE)

    async def _restore(self) -> None:
        """Make what the load did not make. Where not even this can be done, ``tidy_topics`` does it some time."""
        if self._postponed:
            self._postponed = False
            with contextlib.suppress(*_ERRORS):
                await self._second.execute(f"SET lock_timeout = '{_WRITERS_WAIT}'")
                await self._second.execute(_MAKE)
