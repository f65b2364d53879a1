"""Metrics of listings from the database: by kind and outcome, with seconds, rows and failures."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, product
from typing import Any, Final

from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.utils import floatToGoString

from broker_core_postgres.connect import REASONS
from broker_core_postgres.listing.row_conditions import KINDS

__all__ = ["OUTCOMES", "QueryMetrics", "family"]

#: Outcomes of a listing that asked the database.
OUTCOMES: Final = ("listed", "unchanged", "not_loaded", "failed")

_SECONDS: Final = (2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_ROWS: Final = (0, 1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000)


class QueryMetrics:
    """Counts the listings of one instance of the plugin, on the event loop's thread."""

    def __init__(self) -> None:
        self._queries: Counter[tuple[str, str]] = Counter(dict.fromkeys(product(KINDS, OUTCOMES), 0))
        self._seconds = {kind: PlainHistogram(_SECONDS) for kind in KINDS}
        self._rows = PlainHistogram(_ROWS)
        self._failures: Counter[str] = Counter(dict.fromkeys(sorted(REASONS), 0))
        self._ignored = 0

    def query(self, kind: str, outcome: str, seconds: float, rows: int = 0) -> None:
        """Count a listing that asked the database.

        ``kind`` is the kind of the :class:`.RowConditions`, ``outcome`` one of :data:`OUTCOMES`. ``seconds`` are from
        the request for a connection to the last row.
        """
        self._queries[kind, outcome] += 1
        self._seconds[kind].observe(seconds)
        if outcome == "listed":
            self._rows.observe(rows)

    def failure(self, reason: str) -> None:
        """Count a listing that failed at the database, by the ``reason`` of its failure."""
        self._failures[reason] += 1

    def ignored_properties(self, count: int) -> None:
        """Count properties of a request that do not select."""
        self._ignored += count

    def collect(self, prefix: str) -> Iterator[Metric]:
        """The metrics, with the plugin's prefix before their names."""
        yield family(
            CounterMetricFamily,
            f"{prefix}queries",
            "Listings that asked the database.",
            ["plan", "outcome"],
            self._queries.items(),
        )
        yield family(
            HistogramMetricFamily,
            f"{prefix}query_seconds",
            "Seconds of a listing at the database, waiting for a connection included.",
            ["plan"],
            (([kind], buckets.cumulative(), buckets.sum) for kind, buckets in self._seconds.items()),
        )
        yield HistogramMetricFamily(
            f"{prefix}query_rows",
            "Rows that the database sent for a listing.",
            buckets=self._rows.cumulative(),
            sum_value=self._rows.sum,
        )
        yield family(
            CounterMetricFamily,
            f"{prefix}failures",
            "Listings that failed at the database.",
            ["reason"],
            (([reason], count) for reason, count in self._failures.items()),
        )
        yield CounterMetricFamily(
            f"{prefix}ignored_properties",
            "Properties in requests that property_keys does not name.",
            self._ignored,
        )


def family(
    kind: Callable[..., Any], name: str, text: str, labels: Sequence[str], samples: Iterable[Sequence[Any]]
) -> Metric:
    """A family of metrics of a ``kind``; each of its ``samples`` has the values of the labels, and its own."""
    made: Metric = kind(name, text, labels=labels)
    for values, *sample in samples:
        made.add_metric(values, *sample)  # type: ignore[attr-defined]
    return made


class PlainHistogram:
    """Counts of values by inclusive, ascending bounds, and the sum of the values; for the event loop's thread alone.

    An observation takes 0.5 µs; ``prometheus_client.Histogram`` takes 3 µs, for two locks.
    """

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
