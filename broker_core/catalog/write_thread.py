"""The one thread on which servers change a catalogue.

Changes are made one after the other: SQLite has one writer at a time, and threads that wait for it would be missing
elsewhere.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from broker_core.catalog.errors import CatalogBusy
from broker_core.errors import Cause, ListingFailed

__all__ = ["WriteThread"]

_T = TypeVar("_T")

#: Changes that may wait for their turn.
_MOST_WAITING: Final = 1000
#: Seconds for which other processes, or an import, may keep the catalogue from being written.
_PATIENCE: Final = 5.0


class WriteThread:
    """Changes wait for their turn, on one event loop."""

    def __init__(self) -> None:
        self._waiting = 0
        self._thread = ThreadPoolExecutor(1, "topic-writes")

    def close(self) -> None:
        """End the thread, once the change that is made is made."""
        self._thread.shutdown(cancel_futures=True)

    async def run(self, change: Callable[[float], _T], deadline: float | None = None) -> _T:
        """What ``change`` returns or raises; it gets the seconds that it may wait for the catalogue.

        It takes until ``deadline`` (loop time) at the most, and begins within some seconds. Raises
        :exc:`~broker_core.errors.ListingFailed` with the cause ``QUEUE`` and
        :exc:`~broker_core.catalog.errors.CatalogBusy`: nothing was changed then. A change that has begun is made though
        its caller is cancelled, and the caller goes on with what became of it.
        """
        if self._waiting >= _MOST_WAITING:
            raise ListingFailed(f"{_MOST_WAITING} changes of topics wait already", cause=Cause.QUEUE)
        loop = asyncio.get_running_loop()
        end = loop.time() + _PATIENCE
        if deadline is not None:
            end = min(end, deadline)
        self._waiting += 1
        begun = self._thread.submit(lambda: change(max(0.0, end - loop.time())))
        done = asyncio.wrap_future(begun)
        try:
            async with asyncio.timeout_at(end):
                return await asyncio.shield(done)
        except TimeoutError:
            if begun.cancel():
                raise CatalogBusy("Other changes of the catalogue take too long; try again later") from None
            return await done  # it has begun, and tells what became of it
        except asyncio.CancelledError:
            if begun.cancel():
                raise
            return await done
        finally:
            self._waiting -= 1
