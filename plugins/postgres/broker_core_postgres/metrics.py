"""The plugin's metrics for Prometheus. No label holds a name, a pattern, a property or a host.

Plain numbers are counted on the event loop; a scrape makes metrics of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from broker_core_postgres.changes import TopicsListener, VersionHistory
from broker_core_postgres.connect import PostgresPool, ServerPools
from broker_core_postgres.listing import QueryMetrics, family
from broker_core_postgres.mirror_success import MirrorWatch

__all__ = ["PREFIX", "PostgresMetrics"]

#: The prefix of metrics for a plugin named by its entry point.
PREFIX: Final = "broker_core_postgres_"
#: The kind, name, text and value of each metric of a pool.
_OF_POOLS: Final[Sequence[tuple[Callable[..., Any], str, str, Callable[[PostgresPool], int]]]] = (
    (GaugeMetricFamily, "pool_max_connections", "Connections at most.", lambda pool: pool.settings.pool_max),
    (GaugeMetricFamily, "pool_waiting", "Listings that wait for a connection.", lambda pool: pool.waiting),
    (
        GaugeMetricFamily,
        "pool_up",
        "Whether there is a connection, or nothing is known to be in the way of one.",
        lambda pool: int(not pool.down),
    ),
    (CounterMetricFamily, "pool_opened", "Connections that were opened.", lambda pool: pool.opened),
    (CounterMetricFamily, "pool_dropped", "Connections that were closed.", lambda pool: pool.dropped),
    (
        CounterMetricFamily,
        "pool_refused",
        "Listings that got no connection: too many waited, or in vain.",
        lambda pool: pool.refused,
    ),
)
#: The counts of the listener, by their names.
_OF_LISTENER: Final = {
    "hints": "Hints that topics changed.",
    "ignored": "Notifications that were no hints.",
    "losses": "Connections lost that listened.",
    "caught_up": "Namespaces that had changed while no connection listened.",
}


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
        yield self._family(
            GaugeMetricFamily,
            "pool_connections",
            "Connections to PostgreSQL.",
            ["pool", "state"],
            (([pool.name, state], getattr(pool, state)) for pool in pools for state in ("idle", "in_use")),
        )
        for kind, name, text, value in _OF_POOLS:
            values = [([pool.name], value(pool)) for pool in pools]
            yield self._family(kind, name, text, ["pool"], values)
        yield self._count(
            "retries", "Listings that were asked once more, on a fresh connection.", server_pools.retries
        )
        yield self._family(
            CounterMetricFamily,
            "server_choices",
            "Which server was chosen for a listing.",
            ["choice"],
            (([choice], count) for choice, count in server_pools.chooser.choices.items()),
        )
        if server_pools.replicas:
            yield self._family(
                GaugeMetricFamily,
                "replica_lag_versions",
                "Versions of a namespace that a replica was behind, when it was last compared.",
                ["pool"],
                (([pool], lag) for pool, lag in server_pools.chooser.lags.items()),
            )

    def _of_listener(self, listener: TopicsListener) -> Iterator[Metric]:
        yield GaugeMetricFamily(
            f"{self._prefix}listen_connected",
            "Whether changes are listened for right now.",
            int(listener.connected),
        )
        for name, text in _OF_LISTENER.items():
            yield self._count(f"listen_{name}", text, getattr(listener, name))

    def _count(self, name: str, text: str, value: int) -> Metric:
        return CounterMetricFamily(f"{self._prefix}{name}", text, value)

    def _family(self, kind: Callable[..., Any], name: str, *others: Any) -> Metric:
        return family(kind, f"{self._prefix}{name}", *others)
