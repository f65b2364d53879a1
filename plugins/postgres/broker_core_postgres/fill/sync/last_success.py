"""When the mirrors of a database last ended well: told by ``sync`` and ``verify --fix``, shown by ``status``.

A run that left something as it is did not end well, nor did one that was refused or broke off. By scope: two mirrors of
the same part of a database would undo each other, whatever their sources are.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from broker_core.errors import ListingFailed
from broker_core_postgres.connect.server_pools import ServerPools

__all__ = ["MirrorSuccess", "MirrorWatch", "read_successes", "record_success"]

_NOTE: Final = "SELECT broker_core.mirror_succeeded($1, $2)"
_READ: Final = "SELECT scope, source, succeeded FROM broker_core.mirrors ORDER BY scope"
_OLDEST: Final = "SELECT extract(epoch FROM min(succeeded))::float8 FROM broker_core.mirrors"
#: Seconds from one look to the next.
_EVERY: Final = 5.0


@dataclass(frozen=True, slots=True)
class MirrorSuccess:
    """A scope (``everything``, or the options that limit it), its source, and when its last success was."""

    scope: str
    source: str
    succeeded: datetime


async def record_success(connection: Any, scope: str, source: str) -> None:
    """A mirror has just made its part of the database what its source says, all of it."""
    await connection.execute(_NOTE, scope, source)


async def read_successes(connection: Any) -> list[MirrorSuccess]:
    """All that are known, by scope."""
    return [MirrorSuccess(*row) for row in await connection.fetch(_READ)]


class MirrorWatch:
    """Looks every few seconds when the mirrors succeeded, for a server's metrics.

    ``last_success`` is in seconds of Unix time, of the mirror whose success is longest ago: 0 where none has succeeded
    yet, ``None`` where that is not known yet. While the database cannot be asked, what was read last stays.
    """

    def __init__(self, server_pools: ServerPools, every: float = _EVERY) -> None:
        self.last_success: float | None = None
        self._server_pools = server_pools
        self._every = every
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin; nobody waits for it."""
        self._task = asyncio.get_running_loop().create_task(self._watch(), name="postgres mirrors")

    async def close(self) -> None:
        """End."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def _watch(self) -> None:
        clock = asyncio.get_running_loop().time
        while True:
            # A server that is down is not asked: it is for the pool to find out when it is back.
            if not self._server_pools.primary.down:
                try:
                    oldest = await self._server_pools.read(_oldest, deadline=clock() + self._every)
                except ListingFailed:
                    pass
                else:
                    self.last_success = oldest or 0.0
            await asyncio.sleep(self._every)


async def _oldest(connection: Any) -> float | None:
    oldest: float | None = await connection.fetchval(_OLDEST)
    return oldest
