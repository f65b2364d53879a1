"""The last success of each mirror: recorded by ``sync`` and ``verify --fix``, shown by ``status`` and as a metric.

A run that skipped something, was refused or broke off is no success. Mirrors are identified by their scope, since two
mirrors of the same scope would undo each other's work.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from broker_core.errors import ListingFailed
from broker_core_postgres.connect import ServerPools

__all__ = ["MirrorSuccess", "MirrorWatch", "read_successes", "record_success"]

_NOTE: Final = "SELECT broker_core.mirror_succeeded($1, $2)"
_READ: Final = "SELECT scope, source, succeeded FROM broker_core.mirrors ORDER BY scope"
_OLDEST: Final = "SELECT extract(epoch FROM min(succeeded))::float8 FROM broker_core.mirrors"
#: Seconds between two readings.
_EVERY: Final = 5.0


@dataclass(frozen=True, slots=True)
class MirrorSuccess:
    """A scope (``everything``, or the options that limit it), its source, and the time of its last success."""

    scope: str
    source: str
    succeeded: datetime


async def record_success(connection: Any, scope: str, source: str) -> None:
    """Record that a mirror has made its scope equal to its source."""
    await connection.execute(_NOTE, scope, source)


async def read_successes(connection: Any) -> list[MirrorSuccess]:
    """The last successes of all mirrors, by scope."""
    return [MirrorSuccess(*row) for row in await connection.fetch(_READ)]


class MirrorWatch:
    """Reads the mirrors' last successes every few seconds, for a metric.

    ``last_success`` is the oldest of them, in seconds of Unix time: 0 if no mirror has succeeded yet, ``None`` before
    the first reading. It keeps its value while the database cannot be asked.
    """

    def __init__(self, server_pools: ServerPools, every: float = _EVERY) -> None:
        self.last_success: float | None = None
        self._server_pools = server_pools
        self._every = every
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start reading in the background."""
        self._task = asyncio.get_running_loop().create_task(self._watch(), name="postgres mirrors")

    async def close(self) -> None:
        """Stop."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def _watch(self) -> None:
        clock = asyncio.get_running_loop().time
        while True:
            # Not while the server is down: the pool finds out when it is back.
            if not self._server_pools.primary.down:
                try:
                    oldest: float | None = await self._server_pools.read(
                        lambda connection: connection.fetchval(_OLDEST), deadline=clock() + self._every
                    )
                except ListingFailed:
                    pass
                else:
                    self.last_success = oldest or 0.0
            await asyncio.sleep(self._every)
