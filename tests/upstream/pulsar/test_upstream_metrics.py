"""The metrics of the upstream: by address, pool and outcome, and nothing of a principal."""

from __future__ import annotations

from prometheus_client import generate_latest

from broker_core.access.asker import Asker
from broker_core.metrics.metrics import Metrics
from broker_core.upstream.pulsar import show_upstream
from tests.support.scripted_server import ScriptedServer
from tests.upstream.pulsar.test_upstream_connections import ask, cluster_of, partitions


async def test_what_is_shown() -> None:
    metrics = Metrics()
    async with (
        ScriptedServer(partitions(1)) as server,
        cluster_of(server.url, upstream={"token": "secret-token"}) as cluster,
    ):
        show_upstream(metrics, cluster)
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
