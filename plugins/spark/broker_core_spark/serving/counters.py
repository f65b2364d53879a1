"""What the plugin counts: answers, questions that it passed on and why, and how much of the last hour it served."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable
from typing import Final

from broker_core_spark.serving.pass_to_next_lister import PASS_REASONS

__all__ = ["HOUR", "AnswerCounts"]

#: What is told of the last hour is counted minute by minute, in seconds.
HOUR: Final = 3600
_MINUTE: Final = 60


class AnswerCounts:
    """Counts of one plugin; for one thread. ``clock`` gives seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        #: By outcome: ``served``, ``unchanged``, ``stale``.
        self.answers: Counter[str] = Counter({"served": 0, "unchanged": 0, "stale": 0})
        #: By reason.
        self.passed: Counter[str] = Counter(dict.fromkeys(PASS_REASONS, 0))
        #: By result: ``ok``, ``failed``.
        self.checks: Counter[str] = Counter({"ok": 0, "failed": 0})
        self._clock = clock
        self._minutes: deque[list[int]] = deque()  # the minute, answered, passed

    def answered(self, outcome: str) -> None:
        """A question was answered here."""
        self.answers[outcome] += 1
        self._minute()[1] += 1

    def passed_on(self, reason: str) -> None:
        """A question was left to the next lister."""
        self.passed[reason] += 1
        self._minute()[2] += 1

    def last_hour(self) -> tuple[int, int]:
        """How many questions were answered here and how many passed on, in the last hour."""
        self._minute()
        return sum(minute[1] for minute in self._minutes), sum(minute[2] for minute in self._minutes)

    def _minute(self) -> list[int]:
        now = int(self._clock() // _MINUTE)
        minutes = self._minutes
        if not minutes or minutes[-1][0] != now:
            minutes.append([now, 0, 0])
            while minutes[0][0] <= now - HOUR // _MINUTE:
                minutes.popleft()
        return minutes[-1]
