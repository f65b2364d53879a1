"""The metrics of the upstream: by address, pool and outcome, and nothing of a principal."""

from __future__ import annotations

from prometheus_client import generate_latest

from broker_core.access.asker import Asker
from broker_core.memory.permits import Permits
from broker_core.metrics.metrics import Metrics
from broker_core.names import NamespaceName
from broker_core.plugin_api.listing_request import ListingRequest
from broker_core.settings import UpstreamSettings, UpstreamSnapshotsSettings
from broker_core.upstream.pulsar import UpstreamCluster, UpstreamOptions, show_upstream
from tests.support.fake_cluster import FakeCluster
from tests.support.scripted_server import ScriptedServer
from tests.upstream.pulsar.test_upstream_connections import ask, cluster_of, partitions


async def test_what_is_shown() -> None:
    metrics = Metrics()
    async with (
        ScriptedServer(partitions(1)) as server,
        cluster_of(server.url, upstream={"token": "secret-token"}) as cluster,
    ):
        show_upstream(metrics, lambda: cluster)
        assert "upstream_snapshot" not in generate_latest(metrics.registry).decode()
        for role in ("alice-role", "bob-role"):
            await cluster.lookups.use(Asker(role), ask)
        text = generate_latest(metrics.registry).decode()
    for line in (
        f'broker_core_upstream_up{{address="127.0.0.1:{server.port}"}} 1.0',
        'broker_core_upstream_connections{pool="lookups"} 2.0',
        'broker_core_upstream_connections{pool="watch"} 1.0',
        'broker_core_upstream_pools{pool="lookups"} 2.0',
        "broker_core_upstream_connections_limit 256.0",
        "broker_core_upstream_waiting 0.0",
        'broker_core_upstream_connects_total{outcome="connected"} 3.0',
        'broker_core_upstream_connects_total{outcome="tls"} 0.0',
        'broker_core_upstream_connections_closed_total{pool="lookups",reason="evicted"} 0.0',
    ):
        assert line in text
    assert "-role" not in text
    assert "secret" not in text


async def test_of_snapshots() -> None:
    metrics = Metrics()
    async with FakeCluster() as fake:
        snapshots = UpstreamSnapshotsSettings(mode="auto")
        settings = UpstreamSettings(service_url=fake.url, snapshots=snapshots)
        cluster = UpstreamCluster(UpstreamOptions(settings), permits=Permits())
        await cluster.start()
        try:
            show_upstream(metrics, lambda: cluster)
            await cluster.lister.list_topics(ListingRequest(NamespaceName("t", "n")))
            text = generate_latest(metrics.registry).decode()
        finally:
            await cluster.stop()
    for line in (
        "broker_core_upstream_snapshots 1.0",
        'broker_core_upstream_snapshot_listings_total{outcome="first"} 1.0',
        'broker_core_upstream_snapshot_listings_total{outcome="failed"} 0.0',
        "broker_core_upstream_verdicts_total 0.0",
        "broker_core_upstream_watches 0.0",
        'broker_core_upstream_watch_events_total{event="misfits"} 0.0',
    ):
        assert line in text
