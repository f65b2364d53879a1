"""Metrics, parsed."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry, Counter, generate_latest

from broker_core.testing.metric_families import MetricFamilies


@pytest.fixture
def scraped() -> MetricFamilies:
    registry = CollectorRegistry()
    counter = Counter("broker_core_mine_answers", "Answers.", ["outcome"], registry=registry)
    counter.labels("found").inc(2)
    counter.labels("missing").inc()
    Counter("broker_core_mine_reads", "Reads.", registry=registry)
    return MetricFamilies.parse(generate_latest(registry).decode())


def test_families_by_name(scraped: MetricFamilies) -> None:
    assert {"broker_core_mine_answers", "broker_core_mine_reads"} <= set(scraped)
    assert scraped["broker_core_mine_answers"].type == "counter"


def test_the_value_of_a_sample(scraped: MetricFamilies) -> None:
    assert scraped.value("broker_core_mine_answers_total", outcome="found") == 2
    assert scraped.value("broker_core_mine_reads_total") == 0


def test_a_sample_that_is_not_there_is_an_error(scraped: MetricFamilies) -> None:
    with pytest.raises(KeyError, match="'missing'"):
        scraped.value("broker_core_mine_answers_total")
    with pytest.raises(KeyError, match="broker_core_mine_reads"):
        scraped.value("broker_core_mine_answer_total")
