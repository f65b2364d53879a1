"""Statistics of a plugin's answers: counts, latencies, the last error."""

from __future__ import annotations

from collections import Counter, deque
from typing import Any, Final

__all__ = ["HookStatistics"]

#: Latencies are of the last so many calls: operators need the current state.
RECENT: Final = 256


class HookStatistics:
    """The calls of one hook of one plugin."""

    __slots__ = ("_recent", "answers", "failures", "last_error", "passed_over", "stale")

    def __init__(self) -> None:
        self.answers: Counter[str] = Counter()
        self.failures: Counter[str] = Counter()  # by reason
        self.passed_over = 0  # failures after which the next plugin was asked
        self.stale = 0  # failures that a former answer replaced
        self.last_error: str | None = None
        self._recent: deque[float] = deque(maxlen=RECENT)

    def answered(self, answer: str, seconds: float) -> None:
        self.answers[answer] += 1
        self._recent.append(seconds)

    def failed(self, reason: str, error: str, seconds: float | None) -> None:
        """Count a failure; ``seconds`` is ``None`` if the plugin was not called at all."""
        self.answers["error"] += 1
        self.failures[reason] += 1
        self.last_error = error
        if seconds is not None:
            self._recent.append(seconds)

    def percentile(self, percent: float) -> float | None:
        """A percentile of the seconds of the last calls; ``None`` before the first."""
        if not self._recent:
            return None
        ordered = sorted(self._recent)
        return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]

    def describe(self) -> dict[str, Any]:
        """Plain values; latencies in milliseconds."""
        return {
            "calls": self.answers.total(),
            "answers": dict(self.answers),
            "failures": dict(self.failures),
            "passed_over": self.passed_over,
            "stale": self.stale,
            "last_error": self.last_error,
            "p50_ms": _milliseconds(self.percentile(50)),
            "p99_ms": _milliseconds(self.percentile(99)),
        }


def _milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds * 1000, 3)
