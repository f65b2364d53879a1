"""The metrics of plugins: a registry for each, whose faults affect no other.

What plugins register is scraped together with the broker's metrics. A plugin's names begin with its own prefix, so that
none hides another's; a collector that raises loses its own metrics of this scrape, and no others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import structlog
from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

__all__ = ["PluginMetrics", "PluginRegistryOfMetrics", "metric_prefix"]

_log = structlog.get_logger(__name__)

_PREFIX: Final = "broker_core_"


def metric_prefix(plugin: str) -> str:
    """The prefix of the names of a plugin's metrics: ``broker_core_tenant_filter_`` for ``tenant-filter``."""
    return f"{_PREFIX}{re.sub(r'[^a-zA-Z0-9]', '_', plugin)}_"


class PluginRegistryOfMetrics(CollectorRegistry):
    """The registry of one plugin's metrics: ``Counter(name, text, registry=broker.metrics_registry)``."""

    def __init__(self, plugin: str) -> None:
        super().__init__()
        self.plugin = plugin
        self.prefix = metric_prefix(plugin)
        self._collectors: dict[Collector, None] = {}
        self._warned: set[str] = set()

    def register(self, collector: Collector) -> None:
        """Scrape ``collector`` from now on. Raises :exc:`ValueError` for a name that is not the plugin's."""
        for name in self._get_names(collector):  # type: ignore[no-untyped-call]
            if not name.startswith(self.prefix):
                raise ValueError(
                    f"the metrics of plugin {self.plugin!r} begin with {self.prefix!r}: {name!r} does not"
                )
        super().register(collector)
        self._collectors[collector] = None

    def unregister(self, collector: Collector) -> None:
        super().unregister(collector)
        self._collectors.pop(collector, None)

    def close(self) -> None:
        """Scrape none of the plugin's collectors any more."""
        for collector in list(self._collectors):
            self.unregister(collector)

    def collect(self) -> Iterator[Metric]:
        """All metrics except of a failing collector; each kind of failure is logged once."""
        for collector in list(self._collectors):
            try:
                found = list(collector.collect())
            except Exception as error:  # noqa: BLE001 - a plugin's fault, which must not end the scrape
                self._warn_once(f"failed: {type(error).__name__}: {error}", repr(type(error)))
                continue
            for metric in found:
                if metric.name.startswith(self.prefix):
                    yield metric
                else:
                    self._warn_once(
                        f"has a metric {metric.name!r}, which does not begin with {self.prefix!r}",
                        metric.name,
                    )

    def _warn_once(self, problem: str, kind: str) -> None:
        if kind not in self._warned and len(self._warned) < 100:
            self._warned.add(kind)
            _log.warning("metrics of a plugin are left out", plugin=self.plugin, problem=problem)


class PluginMetrics(Collector):
    """The metrics of all plugins, as one collector of the broker's registry."""

    def __init__(self) -> None:
        self._registries: dict[str, PluginRegistryOfMetrics] = {}

    def registry(self, plugin: str) -> PluginRegistryOfMetrics:
        """The one registry of a plugin."""
        if plugin not in self._registries:
            self._registries[plugin] = PluginRegistryOfMetrics(plugin)
        return self._registries[plugin]

    def collect(self) -> Iterator[Metric]:
        """The metrics of all plugins; of a name that two have (``a-b`` and ``a_b``), the first."""
        seen: set[str] = set()
        for registry in self._registries.values():
            for metric in registry.collect():
                if metric.name not in seen:
                    seen.add(metric.name)
                    yield metric

    def describe(self) -> list[Metric]:
        """No metrics yet: plugins register when they start."""
        return []

    def close(self) -> None:
        """Drop all registries: what plugins measure is closed soon."""
        for registry in self._registries.values():
            registry.close()
        self._registries.clear()
