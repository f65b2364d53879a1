"""The plugin's metrics for Prometheus. No label holds a name, a pattern, a property or a host.

Plain numbers are counted on the event loop; a scrape makes metrics of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from broker_core_postgres.changes import TopicsListener, VersionHistory
from broker_core_postgres.connect import ServerPools
from broker_core_postgres.listing import QueryMetrics
from broker_core_postgres.mirror_success import MirrorWatch

__all__ = ["PREFIX", "PostgresMetrics"]

#: The prefix of metrics for a plugin named by its entry point.
PREFIX: Final = "broker_core_postgres_"


class PostgresMetrics(Collector):
    """The metrics of one instance of the plugin, for the event loop's thread."""

    def __init__(self, prefix: str = PREFIX) -> None:
        self._prefix = prefix
        self.queries = QueryMetrics()
        self._server_pools: ServerPools | None = None
        self._listener: TopicsListener | None = None
        self._history: VersionHistory | None = None
        self._mirrors: MirrorWatch | None = None

    def register(self, registry: CollectorRegistry) -> None:
        """Register with the broker's ``metrics_registry``, under the prefix of that registry."""
        self._prefix = getattr(registry, "prefix", self._prefix)
        registry.register(self)

    def watch(
        self,
        server_pools: ServerPools,
        listener: TopicsListener | None = None,
        history: VersionHistory | None = None,
        mirrors: MirrorWatch | None = None,
    ) -> None:
        """Set the sources of the metrics: the pools, the listener, the history of versions and the mirrors."""
        self._server_pools = server_pools
        self._listener = listener
        self._history = history
        self._mirrors = mirrors

    def collect(self) -> Iterator[Metric]:
        yield from self.queries.collect(self._prefix)
        if self._server_pools is not None:
            yield from self._of_pools(self._server_pools)
        if self._listener is not None:
            yield from self._of_listener(self._listener)
        if self._history is not None:
            yield self._count(
                "history_breaks", "Times that the database was found to have gone back.", self._history.breaks
            )
        if self._mirrors is not None and self._mirrors.last_success is not None:
            yield GaugeMetricFamily(
                f"{self._prefix}mirror_last_success_timestamp_seconds",
                "When the mirror last ended well, in seconds of Unix time; of several the longest ago; 0: never.",
                self._mirrors.last_success,
            )

    def describe(self) -> Iterable[Metric]:
        """No metrics in advance: they depend on the settings."""
        return []

    def _of_pools(self, server_pools: ServerPools) -> Iterator[Metric]:
        pools = server_pools.pools
        states = GaugeMetricFamily(
            f"{self._prefix}pool_connections", "Connections to PostgreSQL.", labels=["pool", "state"]
        )
        for pool in pools:
            states.add_metric([pool.name, "idle"], pool.idle)
            states.add_metric([pool.name, "in_use"], pool.in_use)
        yield states
        gauge, counter = GaugeMetricFamily, CounterMetricFamily
        yield self._labelled(
            gauge,
            "pool_max_connections",
            "Connections at most.",
            "pool",
            ((p.name, p.settings.pool_max) for p in pools),
        )
        yield self._labelled(
            gauge,
            "pool_waiting",
            "Listings that wait for a connection.",
            "pool",
            ((p.name, p.waiting) for p in pools),
        )
        yield self._labelled(
            gauge,
            "pool_up",
            "Whether there is a connection, or nothing is known to be in the way of one.",
            "pool",
            ((p.name, int(not p.down)) for p in pools),
        )
        yield self._labelled(
            counter,
            "pool_opened",
            "Connections that were opened.",
            "pool",
            ((p.name, p.opened) for p in pools),
        )
        yield self._labelled(
            counter,
            "pool_dropped",
            "Connections that were closed.",
            "pool",
            ((p.name, p.dropped) for p in pools),
        )
        yield self._labelled(
            counter,
            "pool_refused",
            "Listings that got no connection: too many waited, or in vain.",
            "pool",
            ((p.name, p.refused) for p in pools),
        )
        yield self._count(
            "retries", "Listings that were asked once more, on a fresh connection.", server_pools.retries
        )
        yield self._labelled(
            counter,
            "server_choices",
            "Which server was chosen for a listing.",
            "choice",
            server_pools.chooser.choices.items(),
        )
        if server_pools.replicas:
            yield self._labelled(
                gauge,
                "replica_lag_versions",
                "Versions of a namespace that a replica was behind, when it was last compared.",
                "pool",
                server_pools.chooser.lags.items(),
            )

    def _of_listener(self, listener: TopicsListener) -> Iterator[Metric]:
        yield GaugeMetricFamily(
            f"{self._prefix}listen_connected",
            "Whether changes are listened for right now.",
            int(listener.connected),
        )
        yield self._count("listen_hints", "Hints that topics changed.", listener.hints)
        yield self._count("listen_ignored", "Notifications that were no hints.", listener.ignored)
        yield self._count("listen_losses", "Connections lost that listened.", listener.losses)
        yield self._count(
            "listen_caught_up",
            "Namespaces that had changed while no connection listened.",
            listener.caught_up,
        )

    def _count(self, name: str, text: str, value: int) -> Metric:
        return CounterMetricFamily(f"{self._prefix}{name}", text, value)

    def _labelled(
        self,
        kind: type[GaugeMetricFamily | CounterMetricFamily],
        name: str,
        text: str,
        label: str,
        values: Iterable[tuple[str, int]],
    ) -> Metric:
        family = kind(f"{self._prefix}{name}", text, labels=[label])
        for key, value in values:
            family.add_metric([key], value)
        return family
