"""Counters, gauges and histograms: each is declared by its name, its help text and its labels, and shown when scraped.

They are for the event loop's thread and take no lock: a counter of prometheus_client takes one, and several of them
would cost more than a small listing may. The counts are made a family of prometheus_client at the scrape.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import accumulate
from typing import Any, Final, Protocol

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.utils import floatToGoString

__all__ = [
    "PREFIX",
    "Buckets",
    "Instrument",
    "LoopCounter",
    "LoopHistogram",
    "ReadCounter",
    "ReadGauge",
    "ReadHistogram",
]

PREFIX: Final = "broker_core_"


class Instrument(Protocol):
    """One metric, whatever its kind."""

    @property
    def name(self) -> str:
        """The name without prefix and suffix."""

    def family(self) -> Metric:
        """The metric as a scrape sees it now."""


class Buckets:
    """The counts of one histogram: observing is one search and two additions."""

    __slots__ = ("_bounds", "_counts", "sum")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float) -> None:
        self._counts[bisect_left(self._bounds, value)] += 1
        self.sum += value

    @property
    def count(self) -> int:
        return sum(self._counts)

    def cumulative(self, more_at_zero: int = 0) -> list[tuple[str, float]]:
        """Bounds and counts as Prometheus has them, with ``more_at_zero`` observations of 0 besides."""
        names = [*map(floatToGoString, self._bounds), "+Inf"]
        return [
            (name, count + more_at_zero) for name, count in zip(names, accumulate(self._counts), strict=True)
        ]


class LoopCounter:
    """A counter; calling it with the values of its labels counts one. Values that are ``known`` begin with 0."""

    __slots__ = ("counts", "labels", "name", "text")

    def __init__(
        self, name: str, text: str, labels: tuple[str, ...], known: Iterable[tuple[str, ...]]
    ) -> None:
        self.name = name
        self.text = text
        self.labels = labels
        #: By the values of the labels; hot code counts here itself, without a call.
        self.counts: Counter[tuple[str, ...]] = Counter(dict.fromkeys(known, 0))

    def __call__(self, *values: str) -> None:
        self.counts[values] += 1

    def add(self, count: int, *values: str) -> None:
        """Count several at once."""
        self.counts[values] += count

    def family(self) -> Metric:
        family = CounterMetricFamily(PREFIX + self.name, self.text, labels=self.labels)
        for values, count in self.counts.items():
            family.add_metric(values, count)
        return family


class LoopHistogram:
    """A histogram. Without labels it is there from the start, with labels since :meth:`of` had their values."""

    __slots__ = ("_bounds", "_more_at_zero", "buckets", "labels", "name", "text")

    def __init__(
        self,
        name: str,
        text: str,
        bounds: tuple[float, ...],
        labels: tuple[str, ...],
        more_at_zero: Callable[[], int] | None,
    ) -> None:
        self.name = name
        self.text = text
        self.labels = labels
        self.buckets: dict[tuple[str, ...], Buckets] = {} if labels else {(): Buckets(bounds)}
        self._bounds = bounds
        self._more_at_zero = more_at_zero

    def of(self, *values: str) -> Buckets:
        """The buckets of these values of the labels."""
        buckets = self.buckets.get(values)
        if buckets is None:
            buckets = self.buckets[values] = Buckets(self._bounds)
        return buckets

    def family(self) -> Metric:
        more = 0 if self._more_at_zero is None else self._more_at_zero()
        family = HistogramMetricFamily(PREFIX + self.name, self.text, labels=self.labels)
        for values, buckets in self.buckets.items():
            family.add_metric(values, buckets.cumulative(more), buckets.sum)
        return family


class _Read:
    """A metric whose values are read at the scrape: by the values of its labels, or one value if it has none."""

    __slots__ = ("_read", "labels", "name", "text")

    def __init__(self, name: str, text: str, read: Callable[[], Any], labels: tuple[str, ...]) -> None:
        self.name = name
        self.text = text
        self.labels = labels
        self._read = read

    def _values(self) -> Iterator[tuple[tuple[str, ...], Any]]:
        found = self._read()
        if not isinstance(found, Mapping):
            found = {(): found}
        for values, value in found.items():
            yield (values,) if isinstance(values, str) else values, value


class ReadCounter(_Read):
    """A counter that another part counts for purposes of its own."""

    __slots__ = ()

    def family(self) -> Metric:
        family = CounterMetricFamily(PREFIX + self.name, self.text, labels=self.labels)
        for values, value in self._values():
            family.add_metric(values, value)
        return family


class ReadGauge(_Read):
    """A gauge that is read at the moment of the scrape."""

    __slots__ = ()

    def family(self) -> Metric:
        family = GaugeMetricFamily(PREFIX + self.name, self.text, labels=self.labels)
        for values, value in self._values():
            family.add_metric(values, value)
        return family


class ReadHistogram(_Read):
    """:class:`Buckets` that another part fills."""

    __slots__ = ()

    def family(self) -> Metric:
        family = HistogramMetricFamily(PREFIX + self.name, self.text, labels=self.labels)
        for values, buckets in self._values():
            family.add_metric(values, buckets.cumulative(), buckets.sum)
        return family
