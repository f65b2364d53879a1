"""A histogram for the event loop's thread alone.

An observation takes 0.5 µs; ``prometheus_client.Histogram`` takes 3 µs, for two locks.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate

from prometheus_client.utils import floatToGoString

__all__ = ["PlainHistogram"]


class PlainHistogram:
    """Counts of values by inclusive, ascending bounds, and the sum of the values."""

    __slots__ = ("_bounds", "_counts", "sum")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float) -> None:
        """Count a value."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self.sum += value

    def cumulative(self) -> list[tuple[str, float]]:
        """Prometheus' buckets: each bound as a label, with the number of values up to it."""
        labels = [*map(floatToGoString, self._bounds), "+Inf"]
        return list(zip(labels, accumulate(self._counts), strict=True))
