"""The readers of large answers over HTTP: the slowest is cut off if others wait for the memory of its answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from operator import itemgetter

from broker_core.memory import PermitBudget
from broker_core.servers.connection import ReaderPace

__all__ = ["SlowReaders"]


@dataclass(frozen=True, slots=True, eq=False)
class _Reader:
    pace: ReaderPace
    holds: Callable[[PermitBudget], bool]
    cut: Callable[[], None]


class SlowReaders:
    """Slow readers of one broker; for one event loop."""

    def __init__(self) -> None:
        self._readers: set[_Reader] = set()

    @contextmanager
    def reading(
        self, pace: ReaderPace, holds: Callable[[PermitBudget], bool], cut: Callable[[], None]
    ) -> Iterator[None]:
        """While an answer is read: ``holds`` says whether its memory is of a budget, ``cut`` ends it."""
        reader = _Reader(pace, holds, cut)
        self._readers.add(reader)
        try:
            yield
        finally:
            self._readers.discard(reader)

    @property
    def is_alone(self) -> bool:
        """Whether there is one at the most, so that nobody else waits for a turn to write."""
        return len(self._readers) <= 1

    def make_room(self, budget: PermitBudget) -> None:
        """Cut the slowest reader off whose answer holds permits of ``budget``, for which a request has waited long."""
        now = asyncio.get_running_loop().time()
        slow = [
            (seconds, reader)
            for reader in self._readers
            if reader.holds(budget) and (seconds := reader.pace.slowness(now)) is not None
        ]
        if slow:
            max(slow, key=itemgetter(0))[1].cut()
