"""The buckets of a histogram."""

from __future__ import annotations

from broker_core_postgres.listing.plain_histogram import PlainHistogram


def test_values_are_counted_by_the_bounds_that_they_are_not_above() -> None:
    buckets = PlainHistogram((0.5, 1, 10))
    assert buckets.cumulative() == [("0.5", 0), ("1.0", 0), ("10.0", 0), ("+Inf", 0)]
    for value in (0.5, 0.6, 1, 10.5, 7):
        buckets.observe(value)
    assert buckets.cumulative() == [("0.5", 1), ("1.0", 3), ("10.0", 4), ("+Inf", 5)]
    assert buckets.sum == 19.6
