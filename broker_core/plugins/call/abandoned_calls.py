"""Abandoned calls of plugins: their callers have given up, but they may still run.

A plugin can ignore its cancellation. Then its task is kept, or it would be collected while it runs, and its error is
read, or asyncio would report it as never retrieved. When the broker ends, such a task must not keep the process:
``asyncio.run`` waits for every task that it cancels, even for ever.
"""

from __future__ import annotations

import asyncio
from asyncio.tasks import _unregister_task
from typing import Any, Final

import structlog

__all__ = ["Abandoned"]

log = structlog.get_logger(__name__)

#: Seconds that abandoned work has at the very end.
_LAST_CALL: Final = 0.1


class Abandoned:
    """The abandoned work of one plugin; ``len()`` is how much of it still runs."""

    __slots__ = ("_plugin", "_work")

    def __init__(self, plugin: str) -> None:
        self._plugin = plugin
        self._work: set[asyncio.Future[Any]] = set()

    def __len__(self) -> int:
        return len(self._work)

    def leave(self, work: asyncio.Future[Any]) -> None:
        """Cancel ``work``, without waiting for it."""
        self._work.add(work)
        work.add_done_callback(self._ended)
        work.cancel()

    async def end(self) -> None:
        """End running work by closing its coroutine; the loop does not wait for work that resists even that."""
        for work in list(self._work):
            if isinstance(work, asyncio.Task) and not work.done():
                coroutine = work.get_coro()
                try:
                    if coroutine is not None:
                        coroutine.close()
                except BaseException:  # noqa: BLE001, S110 - it is a plugin's, and it may raise what it likes
                    pass
            work.cancel()
        if self._work:
            await asyncio.wait(self._work, timeout=_LAST_CALL)
        for work in list(self._work):
            log.warning("plugin left a task behind that cannot be ended", plugin=self._plugin)
            self._work.discard(work)
            work.remove_done_callback(self._ended)
            if isinstance(work, asyncio.Task):
                _unregister_task(work)

    def _ended(self, work: asyncio.Future[Any]) -> None:
        self._work.discard(work)
        if not work.cancelled():
            work.exception()
