"""Metrics of plugins: scraped with the broker's, under their own names, with isolated failures."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from structlog.testing import capture_logs

from broker_core.metrics.plugin_metrics import PluginMetrics, metric_prefix


class Reads(Collector):
    def __init__(self, *names: str, fails: bool = False) -> None:
        self.names = names
        self.fails = fails

    def collect(self) -> Iterable[Metric]:
        for name in self.names:
            yield GaugeMetricFamily(name, "A thing.", 1)
        if self.fails:
            raise OSError("no database")


def scraped(metrics: PluginMetrics) -> set[str]:
    registry = CollectorRegistry()
    registry.register(metrics)
    lines = generate_latest(registry).decode().splitlines()
    return {line.split()[0] for line in lines if not line.startswith("#") and "_created" not in line}


def test_the_prefix_has_letters_and_digits_only() -> None:
    assert metric_prefix("tenant-filter.2") == "broker_core_tenant_filter_2_"


def test_metrics_are_scraped_until_they_are_let_go() -> None:
    metrics = PluginMetrics()
    registry = metrics.registry("pool")
    assert metrics.registry("pool") is registry
    Counter("broker_core_pool_waits", "Waits.", registry=registry).inc()
    gauge = Gauge("broker_core_pool_size", "Connections.", registry=registry)
    registry.register(Reads("broker_core_pool_idle"))
    assert scraped(metrics) == {
        "broker_core_pool_waits_total",
        "broker_core_pool_size",
        "broker_core_pool_idle",
    }
    registry.unregister(gauge)
    assert "broker_core_pool_size" not in scraped(metrics)
    metrics.close()
    assert scraped(metrics) == set()


def test_a_name_without_the_prefix_is_refused_or_left_out() -> None:
    metrics = PluginMetrics()
    registry = metrics.registry("pool")
    with pytest.raises(ValueError, match="begin with 'broker_core_pool_'"):
        Counter("pool_waits", "Waits.", registry=registry)
    registry.register(Reads("broker_core_connections", "broker_core_pool_idle"))
    with capture_logs() as logs:
        assert scraped(metrics) == scraped(metrics) == {"broker_core_pool_idle"}
    assert [entry["plugin"] for entry in logs] == ["pool"]


def test_a_collector_that_fails_leaves_out_its_own_metrics_only() -> None:
    metrics = PluginMetrics()
    metrics.registry("bad").register(Reads("broker_core_bad_a", fails=True))
    Gauge("broker_core_bad_b", "Fine.", registry=metrics.registry("bad"))
    Gauge("broker_core_good_a", "Fine.", registry=metrics.registry("good"))
    with capture_logs() as logs:
        assert scraped(metrics) == scraped(metrics) == {"broker_core_bad_b", "broker_core_good_a"}
    assert [entry["problem"] for entry in logs] == ["failed: OSError: no database"]


def test_a_name_of_two_plugins_is_scraped_once() -> None:
    metrics = PluginMetrics()
    for plugin in ("a-b", "a_b"):
        Gauge("broker_core_a_b_size", "Of both.", registry=metrics.registry(plugin))
    registry: Any = CollectorRegistry()
    registry.register(metrics)
    assert generate_latest(registry).decode().count("# TYPE broker_core_a_b_size") == 1
