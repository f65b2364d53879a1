"""Where a server tells of each listing besides its metrics, as the operator wishes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Final

from broker_core.logs import AccessLog
from broker_core.settings import Settings
from broker_core.sighup_reloads import Reloads

__all__ = ["Sight", "open_sight"]

#: Seconds in which the last lines of the access log are written.
_LAST_LINES: Final = 1.0


@dataclass(frozen=True, slots=True)
class Sight:
    """What is told: nothing by default."""

    access_log: AccessLog | None = None


@asynccontextmanager
async def open_sight(settings: Settings, reloads: Reloads) -> AsyncIterator[Sight]:
    """That of the settings, until the end of the block. Raises :exc:`~broker_core.logs.LogFileError`."""
    async with AsyncExitStack() as stack:
        access_log: AccessLog | None = None
        if settings.log.access is not None:
            access_log = await asyncio.to_thread(AccessLog, settings.log.access)
            stack.push_async_callback(asyncio.to_thread, access_log.close, _LAST_LINES)
            reloads.add("access log", access_log.reopen)
        yield Sight(access_log)
