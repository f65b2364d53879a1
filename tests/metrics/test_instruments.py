"""Counters, gauges and histograms, declared in one call each and shown at the scrape."""

from __future__ import annotations

from broker_core.metrics.metrics import Buckets, Metrics
from tests.support.scraped import scraped


def test_buckets_are_cumulative_and_closed_above() -> None:
    buckets = Buckets((1, 10))
    for value in (0, 1, 2, 10, 11):
        buckets.observe(value)
    assert buckets.cumulative() == [("1.0", 2), ("10.0", 4), ("+Inf", 5)]
    assert (buckets.count, buckets.sum) == (5, 24)


def test_a_counter_is_called() -> None:
    metrics = Metrics()
    plain = metrics.counter("plain", "Without labels.")
    by_kind = metrics.counter("by_kind", "By kind and size.", "kind", "size", known=[("a", "1"), ("b", "1")])
    before = scraped(metrics.registry)
    assert before["broker_core_plain_total", ""] == 0
    assert before["broker_core_by_kind_total", "kind=a,size=1"] == 0
    plain()
    plain.add(4)
    by_kind("b", "1")
    by_kind("c", "2")
    after = scraped(metrics.registry)
    assert after["broker_core_plain_total", ""] == 5
    assert [
        after["broker_core_by_kind_total", f"kind={kind}"] for kind in ("a,size=1", "b,size=1", "c,size=2")
    ] == [
        0,
        1,
        1,
    ]


def test_a_histogram_with_labels_is_there_with_its_first_values() -> None:
    metrics = Metrics()
    plain = metrics.histogram("plain", "Without labels.", (1, 10), more_at_zero=lambda: 3)
    by_kind = metrics.histogram("by_kind", "By kind.", (1, 10), "kind")
    plain.of().observe(5)
    by_kind.of("a")
    samples = scraped(metrics.registry)
    assert samples["broker_core_plain_bucket", "le=1.0"] == 3
    assert samples["broker_core_plain_count", ""] == 4
    assert samples["broker_core_by_kind_count", "kind=a"] == 0
    assert by_kind.of("a") is by_kind.of("a")


def test_what_is_read_is_read_at_the_scrape() -> None:
    metrics = Metrics()
    values = {"a": 1.0}
    buckets = {"a": Buckets((1, 10))}
    metrics.gauge("gauge", "One value.", lambda: len(values))
    metrics.gauge("by_kind", "By kind.", lambda: values, "kind")
    metrics.read_counter("pairs", "By two labels.", lambda: {("x", "y"): 7}, "one", "two")
    metrics.read_histogram("buckets", "Of somebody else.", lambda: buckets, "kind")
    values["b"] = 2.5
    buckets["a"].observe(4)
    samples = scraped(metrics.registry)
    assert samples["broker_core_gauge", ""] == 2
    assert samples["broker_core_by_kind", "kind=b"] == 2.5
    assert samples["broker_core_pairs_total", "one=x,two=y"] == 7
    assert samples["broker_core_buckets_sum", "kind=a"] == 4
