"""Stores snapshots in time: soon after a namespace was read, seldom while it changes, and once more at the end.

One thread writes, and rests for as long as it works. (A lower priority would be in the way: a thread that waits for a
processor may hold the interpreter's lock meanwhile.) The snapshot to write is looked up when it begins: nothing is held
in memory until then.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import Callable, Hashable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Final, Generic, TypeVar

import structlog

from broker_core.snapshots.stored.stored_snapshots import Pace, Stored, StoredSnapshots

__all__ = ["SnapshotWriter"]

#: Seconds from the first reading until it is stored: the requests that it was read for come first.
_SOON: Final = 2.0
#: Seconds between two times that a namespace is stored, at least.
_PAUSE: Final = 60.0
#: The part of the time that a namespace may take the thread, and the bytes a second that it may write.
_SHARE: Final = 1 / 20
_RATE: Final = 512 * 1024
_SWEEP_PAUSE: Final = 60.0
_LONGEST_REST: Final = 0.05

#: The key of a snapshot: a namespace and a mode, and the principal of the listing if that makes a difference.
K = TypeVar("K", bound=Hashable)

_log = structlog.get_logger(__name__)


class SnapshotWriter(Generic[K]):
    """Stores changed snapshots. Made and used on one event loop.

    ``current`` gives the snapshot of a namespace in memory now, ``every`` all of them.
    """

    def __init__(
        self,
        stored: StoredSnapshots,
        current: Callable[[K], Stored | None],
        every: Callable[[], Iterable[Stored]],
        *,
        soon: float = _SOON,
        pause: float = _PAUSE,
    ) -> None:
        self._stored = stored
        self._current = current
        self._every = every
        self._soon = soon
        self._pause = pause
        self._loop = asyncio.get_running_loop()
        self._thread = ThreadPoolExecutor(1, "snapshot-writer")
        self._stopping = threading.Event()
        self._due: dict[K, float] = {}
        self._not_before: dict[K, float] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._writing: asyncio.Future[None] | None = None
        self._end = math.inf  # when the thread shall stop in any case, by time.monotonic()
        self._swept = -math.inf

    def changed(self, key: K) -> None:
        """Note that a namespace has changed in memory."""
        if key not in self._due and self._end == math.inf:
            self._due[key] = max(self._loop.time() + self._soon, self._not_before.get(key, 0.0))
            self._plan()

    async def stop(self, within: float) -> None:
        """Store the snapshots in memory, for up to ``within`` seconds; nothing is written after that, nor by a next
        call.
        """
        if self._stopping.is_set():
            return
        self._end = time.monotonic() + within
        self._stopping.set()
        self._due.clear()
        self._plan()
        last = asyncio.wrap_future(self._thread.submit(self._write_all, list(self._every())))
        self._thread.shutdown(wait=False)
        with suppress(TimeoutError):  # it hangs in a write: it must hold up nobody
            await asyncio.wait_for(last, within + 1.0)

    # -- planning

    def _plan(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._due and self._writing is None:
            key = min(self._due, key=self._due.__getitem__)
            self._timer = self._loop.call_at(self._due[key], self._begin, key)

    def _begin(self, key: K) -> None:
        self._timer = None
        del self._due[key]
        stored = self._current(key)
        if stored is None or not stored.is_worth_it:
            self._plan()
            return
        self._writing = self._loop.run_in_executor(self._thread, self._write, key, stored)
        self._writing.add_done_callback(self._written)

    def _written(self, done: asyncio.Future[None]) -> None:
        self._writing = None
        if not done.cancelled() and (error := done.exception()) is not None:
            _log.error("storing a snapshot failed", exc_info=error)
        self._plan()

    # -- in the thread

    def _write(self, key: K, stored: Stored) -> None:
        began = rested = time.monotonic()

        def pace() -> Pace:
            nonlocal rested
            self._stopping.wait(min(time.monotonic() - rested, _LONGEST_REST))
            rested = time.monotonic()
            return self._pace()

        written = self._stored.write(stored, pace=pace)
        ended = time.monotonic()
        pause = max(self._pause, (ended - began) / _SHARE, (written or 0) / _RATE)
        self._not_before[key] = self._loop.time() + pause
        if ended - self._swept > _SWEEP_PAUSE and self._pace() is Pace.STEADY:
            self._stored.sweep()
            self._swept = ended

    def _write_all(self, every: list[Stored]) -> None:
        for stored in every:
            if stored.is_worth_it and self._pace() is not Pace.ENDED:
                self._stored.write(stored, pace=self._pace)
        if self._swept == -math.inf and self._pace() is not Pace.ENDED:
            self._stored.sweep()

    def _pace(self) -> Pace:
        if not self._stopping.is_set():
            return Pace.STEADY
        return Pace.AT_ONCE if time.monotonic() < self._end else Pace.ENDED
