"""Counters, gauges and histograms: each is declared by its name, its help text and its labels, and shown when scraped.

They are for the event loop's thread and take no lock: a counter of prometheus_client takes one, and several of them
would cost more than a small listing may. The counts are made a family of prometheus_client at the scrape.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import accumulate
from typing import Any, Final

from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.utils import floatToGoString

__all__ = ["PREFIX", "Buckets", "Instrument", "LoopCounter", "LoopHistogram"]

PREFIX: Final = "broker_core_"


class Buckets:
    """The counts of one histogram: observing is one search and two additions.

    ``more_at_zero`` is read at the scrape and counts observations of 0 besides.
    """

    __slots__ = ("_bounds", "_counts", "_more_at_zero", "sum")

    def __init__(self, bounds: tuple[float, ...], more_at_zero: Callable[[], int] = lambda: 0) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._more_at_zero = more_at_zero
        self.sum = 0.0

    def observe(self, value: float) -> None:
        self._counts[bisect_left(self._bounds, value)] += 1
        self.sum += value

    @property
    def count(self) -> int:
        return sum(self._counts)

    def cumulative(self) -> list[tuple[str, float]]:
        """Bounds and counts as Prometheus has them."""
        names, more = [*map(floatToGoString, self._bounds), "+Inf"], self._more_at_zero()
        return [(name, count + more) for name, count in zip(names, accumulate(self._counts), strict=True)]


class Instrument:
    """One metric. ``kind`` is the class of its family, ``name`` has neither prefix nor suffix.

    ``read`` gives its values at the scrape, numbers or :class:`Buckets`: by the values of its labels, or one value if
    it has none.
    """

    __slots__ = ("_kind", "_read", "labels", "name", "text")

    def __init__(
        self,
        kind: Callable[..., Any],
        name: str,
        text: str,
        labels: tuple[str, ...],
        read: Callable[[], Any],
    ) -> None:
        self._kind = kind
        self.name = name
        self.text = text
        self.labels = labels
        self._read = read

    def family(self) -> Metric:
        """The metric as a scrape sees it now."""
        family: Any = self._kind(PREFIX + self.name, self.text, labels=self.labels)
        found = self._read()
        for values, value in (found if isinstance(found, Mapping) else {(): found}).items():
            sample = (value.cumulative(), value.sum) if isinstance(value, Buckets) else (value,)
            family.add_metric((values,) if isinstance(values, str) else values, *sample)
        return family  # type: ignore[no-any-return]  # each kind adds samples by a signature of its own


class LoopCounter(Instrument):
    """A counter; calling it with the values of its labels counts one. Values that are ``known`` begin with 0."""

    __slots__ = ("counts",)

    def __init__(
        self, name: str, text: str, labels: tuple[str, ...], known: Iterable[tuple[str, ...]]
    ) -> None:
        #: By the values of the labels; hot code counts here itself, without a call.
        self.counts: Counter[tuple[str, ...]] = Counter(dict.fromkeys(known, 0))
        super().__init__(CounterMetricFamily, name, text, labels, lambda: self.counts)

    def __call__(self, *values: str) -> None:
        self.counts[values] += 1

    def add(self, count: int, *values: str) -> None:
        """Count several at once."""
        self.counts[values] += count


class LoopHistogram(Instrument):
    """A histogram. Without labels it is there from the start, with labels since :meth:`of` had their values."""

    __slots__ = ("_made", "buckets")

    def __init__(self, name: str, text: str, labels: tuple[str, ...], made: Callable[[], Buckets]) -> None:
        self.buckets: dict[tuple[str, ...], Buckets] = {} if labels else {(): made()}
        self._made = made
        super().__init__(HistogramMetricFamily, name, text, labels, lambda: self.buckets)

    def of(self, *values: str) -> Buckets:
        """The buckets of these values of the labels."""
        buckets = self.buckets.get(values)
        if buckets is None:
            buckets = self.buckets[values] = self._made()
        return buckets
