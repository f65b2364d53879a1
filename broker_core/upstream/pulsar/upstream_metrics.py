"""The metrics of the connections to the brokers. No label has a principal: its connections count with all others."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from broker_core.metrics import Metrics
from broker_core.upstream.pulsar.upstream_cluster import UpstreamCluster
from broker_core.upstream.pulsar.upstream_connections import UpstreamConnections
from broker_core.upstream.snapshots import SnapshotLister

__all__ = ["show_upstream"]


def show_upstream(metrics: Metrics, cluster: Callable[[], UpstreamCluster]) -> None:
    """Declare the metrics of the cluster of the moment."""

    def pools() -> dict[str, UpstreamConnections]:
        return {"lookups": cluster().lookups, "listings": cluster().listings}

    def closed() -> Mapping[tuple[str, str], float]:
        return {
            (name, reason): count for name, pool in pools().items() for reason, count in pool.closed.items()
        }

    metrics.gauge(
        "upstream_up",
        "Whether a broker answers at an address of the service URL: 1 or 0.",
        lambda: {address: float(state == "up") for address, state in cluster().health.states().items()},
        "address",
    )
    metrics.gauge(
        "upstream_connections",
        "Open connections to the brokers, of all principals: for lookups, listings, and watching an address.",
        lambda: {
            **{name: pool.connections for name, pool in pools().items()},
            "watch": cluster().watch.connections,
        },
        "pool",
    )
    metrics.gauge(
        "upstream_pools",
        "Principals, and brokers of redirects, that have connections or wait for one.",
        lambda: {name: pool.pools for name, pool in pools().items()},
        "pool",
    )
    metrics.gauge(
        "upstream_connections_limit",
        "Connections for lookups and listings at most.",
        lambda: cluster().places.limit,
    )
    metrics.gauge(
        "upstream_waiting", "Pools that wait for a place for a connection.", lambda: cluster().places.waiting
    )
    metrics.read_counter(
        "upstream_connects",
        "Attempts to connect to a broker, by outcome.",
        lambda: dict(cluster().connector.counts),
        "outcome",
    )
    metrics.read_counter(
        "upstream_connections_closed",
        "Connections to the brokers that ended, by reason.",
        closed,
        "pool",
        "reason",
    )
    if cluster().snapshots is None:
        return

    def snapshots() -> SnapshotLister:
        found = cluster().snapshots
        assert found is not None  # that there are any needs a restart
        return found

    metrics.gauge(
        "upstream_snapshots", "Snapshots of namespaces in memory.", lambda: len(snapshots().snapshots)
    )
    metrics.read_counter(
        "upstream_snapshot_listings",
        "Listings of the cluster for snapshots, by outcome.",
        lambda: dict(snapshots().snapshots.counts),
        "outcome",
    )
    metrics.gauge(
        "upstream_watches",
        "Namespaces whose changes the brokers report now.",
        lambda: snapshots().watches.open,
    )
    metrics.read_counter(
        "upstream_watch_events",
        "Events of watches at the brokers, by kind.",
        lambda: dict(snapshots().watches.counts),
        "event",
    )
    metrics.read_counter(
        "upstream_verdicts",
        "Questions to the cluster whether a client may list a namespace, for one role that lists for all.",
        lambda: snapshots().verdicts,
    )
