"""The last hour of a server, without a monitoring system: a sample every ten seconds."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sized
from pathlib import Path
from typing import Any, Final

import numpy as np

from broker_core.memory import Permits
from broker_core.metrics.metrics import LoopCounter, LoopHistogram, Metrics

__all__ = ["INTERVAL", "SAMPLES", "History"]

#: Samples that are kept, and the seconds between two of them.
SAMPLES: Final = 360
INTERVAL: Final = 10.0
#: The counters that are shown as rates, by the names of their series.
_RATES: Final[Mapping[str, str]] = {
    "listings_per_s": "listing_requests",
    "listing_errors_per_s": "listing_rejected",
    "http_per_s": "http_requests",
    "kafka_per_s": "kafka_requests",
}
#: Histograms that are shown by their mean, in milliseconds.
_MEANS: Final[Mapping[str, str]] = {
    "listing_ms": "listing_seconds",
    "loop_lag_ms": "event_loop_lag_seconds",
}
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_MEMORY: Final = Path("/proc/self/statm")


class History:
    """The samples of a server. ``gauges`` are read at each sample, by the names of their series.

    Some 20 KB, and some tens of microseconds for a sample.
    """

    def __init__(self, metrics: Metrics, gauges: Mapping[str, Callable[[], float]]) -> None:
        self._metrics = metrics
        self._gauges = {**gauges, "rss": _rss}
        self.series: Final = (*_RATES, *_MEANS, *self._gauges, "cpu")
        self._samples = np.full((SAMPLES, len(self.series)), np.nan)
        self._taken = 0
        self._ended = 0.0  # the time of the last sample, in seconds since 1970
        self._last = self._totals()

    @classmethod
    def of(cls, metrics: Metrics, permits: Permits, clients: Sized) -> History:
        """The history of a broker, with its clients and the memory that its requests hold."""
        return cls(
            metrics,
            {
                "connections": lambda: len(clients),
                "heap_used": lambda: permits.heap.acquired,
                "direct_used": lambda: permits.direct.acquired + permits.reserve.acquired,
                "snapshots_used": lambda: permits.snapshots.acquired,
            },
        )

    async def watch(self) -> None:
        """Take samples until cancelled."""
        while True:
            await asyncio.sleep(INTERVAL)
            self.sample()

    def sample(self) -> None:
        """Take a sample: the counts since the last one, and the current gauges."""
        before, now = self._last, self._totals()
        self._last = now
        seconds = max(now["time"] - before["time"], 1e-9)
        row = [(now[name] - before[name]) / seconds for name in _RATES]
        for name in _MEANS:
            count = now[f"{name} count"] - before[f"{name} count"]
            row.append(1000 * (now[name] - before[name]) / count if count else np.nan)
        row += [read() for read in self._gauges.values()]
        row.append((now["cpu"] - before["cpu"]) / seconds)
        self._samples[self._taken % SAMPLES] = row
        self._taken += 1
        self._ended = time.time()

    def values(self) -> dict[str, Any]:
        """All samples as plain values, the oldest first; unknown values are ``None``."""
        first = max(0, self._taken - SAMPLES)
        places = np.arange(first, self._taken) % SAMPLES
        kept = self._samples[places]
        return {
            "interval_s": INTERVAL,
            "until": self._ended if self._taken else None,
            "series": {name: _shown(kept[:, column]) for column, name in enumerate(self.series)},
        }

    def _totals(self) -> dict[str, float]:
        found = {"time": time.monotonic(), "cpu": time.process_time()}
        for name, metric in _RATES.items():
            counter = self._metrics.find(metric)
            found[name] = sum(counter.counts.values()) if isinstance(counter, LoopCounter) else 0
        for name, metric in _MEANS.items():
            histogram = self._metrics.find(metric)
            buckets = histogram.buckets.values() if isinstance(histogram, LoopHistogram) else ()
            found[name] = sum(each.sum for each in buckets)
            found[f"{name} count"] = sum(each.count for each in buckets)
        return found


def _rss() -> float:
    with contextlib.suppress(OSError, ValueError, IndexError):
        return float(_MEMORY.read_text().split()[1]) * _PAGE
    return float("nan")


def _shown(column: Iterable[float]) -> list[float | None]:
    return [None if value != value else round(float(value), 3) for value in column]  # noqa: PLR0124 - nan
