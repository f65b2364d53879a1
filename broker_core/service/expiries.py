"""Ends of credentials by the wall clock: a due one is called back within a second, also after the clock was moved.

Thousands of credentials may end at the same time. They take turns with everything else on the event loop.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import Final

from broker_core.concurrency import loop_turn

__all__ = ["Expiries", "Expiry"]

#: Seconds between two looks at the clock. It may be moved at any time, so that no timer can wait for one of its times.
_LOOK: Final = 1.0
#: Seconds that due callbacks may take in one turn of the event loop.
_SLICE: Final = 0.002
#: Cancelled ones are kept until they are half of all, if there are more than so many.
_FEW: Final = 64


class Expiry:
    """One end: ``at`` in seconds since 1970."""

    __slots__ = ("_expiries", "at", "expired")

    def __init__(self, expiries: Expiries, at: float, expired: Callable[[], object]) -> None:
        self._expiries = expiries
        self.at = at
        self.expired: Callable[[], object] | None = expired

    def cancel(self) -> None:
        """Call nobody back any more. May be called again."""
        if self.expired is not None:
            self.expired = None
            self._expiries.one_less()

    def __lt__(self, other: Expiry) -> bool:
        return self.at < other.at


class Expiries:
    """The ends of one server, for the thread of its event loop. ``clock`` is the wall clock, in seconds since 1970."""

    __slots__ = ("_cancelled", "_clock", "_heap", "_timer", "_under_way")

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._heap: list[Expiry] = []
        self._cancelled = 0
        self._timer: asyncio.TimerHandle | None = None
        self._under_way = False

    def __len__(self) -> int:
        return len(self._heap) - self._cancelled

    def call_at(self, at: float, expired: Callable[[], object]) -> Expiry:
        """Call ``expired`` when the wall clock has reached ``at``."""
        expiry = Expiry(self, at, expired)
        heappush(self._heap, expiry)
        if self._timer is None and not self._under_way:
            self._look_later()
        return expiry

    def close(self) -> None:
        """Call nobody back any more."""
        for expiry in self._heap:
            expiry.expired = None
        self._heap.clear()
        self._cancelled = 0
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def one_less(self) -> None:
        """Note that a waiting end is cancelled."""
        self._cancelled += 1
        if self._cancelled > _FEW and 2 * self._cancelled > len(self._heap):
            self._heap = [expiry for expiry in self._heap if expiry.expired is not None]
            heapify(self._heap)
            self._cancelled = 0

    def _look_later(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(_LOOK, self._look)

    def _look(self) -> None:
        self._timer = None
        self._under_way = False
        try:
            self._call_due()
        finally:  # whatever one of them fails with, the others have their time
            if self._heap and not self._under_way:
                self._look_later()

    def _call_due(self) -> None:
        loop = asyncio.get_running_loop()
        until = loop.time() + _SLICE
        while self._heap and (self._heap[0].expired is None or self._heap[0].at <= self._clock()):
            expiry = heappop(self._heap)
            expired, expiry.expired = expiry.expired, None
            if expired is None:
                self._cancelled -= 1
                continue
            expired()
            if loop.time() >= until:
                self._under_way = True
                loop_turn().call_next(self._look)
                return
