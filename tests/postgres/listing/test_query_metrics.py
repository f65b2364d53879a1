"""The metrics of listings, as a scrape shows them."""

from __future__ import annotations

from prometheus_client import CollectorRegistry

from broker_core_postgres.listing.query_metrics import PlainHistogram
from broker_core_postgres.metrics import PostgresMetrics


def test_listings_are_counted_by_plan_and_outcome() -> None:
    metrics = PostgresMetrics()
    registry = CollectorRegistry()
    registry.register(metrics)

    def sample(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(f"broker_core_postgres_{name}", labels)

    metrics.queries.query("range", "listed", 0.002, 10)
    metrics.queries.query("range", "unchanged", 0.001)
    metrics.queries.query("namespace", "failed", 5.0)
    metrics.queries.failure("unreachable")
    metrics.queries.ignored_properties(3)
    assert sample("queries_total", plan="range", outcome="listed") == 1
    assert sample("query_seconds_count", plan="range") == 2
    assert sample("query_seconds_sum", plan="namespace") == 5.0
    assert sample("query_rows_sum") == 10
    assert sample("query_rows_count") == 1
    assert sample("failures_total", reason="unreachable") == 1
    assert sample("ignored_properties_total") == 3


def test_values_are_counted_by_the_bounds_that_they_are_not_above() -> None:
    buckets = PlainHistogram((0.5, 1, 10))
    assert buckets.cumulative() == [("0.5", 0), ("1.0", 0), ("10.0", 0), ("+Inf", 0)]
    for value in (0.5, 0.6, 1, 10.5, 7):
        buckets.observe(value)
    assert buckets.cumulative() == [("0.5", 1), ("1.0", 3), ("10.0", 4), ("+Inf", 5)]
    assert buckets.sum == 19.6
