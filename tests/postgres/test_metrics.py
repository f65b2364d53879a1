"""The plugin's metrics, in a registry of their own and among the broker's."""

from __future__ import annotations

from prometheus_client import CollectorRegistry

from broker_core.metrics.plugin_metrics import PluginRegistryOfMetrics
from broker_core_postgres.changes.version_history import VersionHistory
from broker_core_postgres.plugin import PostgresPlugin
from broker_core_postgres.service import PostgresService
from broker_core_postgres.settings import PostgresSettings
from tests.postgres.fault_setup import TOPICS, fill_topics, serving
from tests.support.eventually import eventually
from tests.support.narrowed import present
from tests.support.postgres_server import Database

#: Name, type and labels, as in docs/reference/postgres.md.
METRICS = {
    "queries": ("counter", {"plan", "outcome"}),
    "query_seconds": ("histogram", {"plan", "le"}),
    "query_rows": ("histogram", {"le"}),
    "failures": ("counter", {"reason"}),
    "ignored_properties": ("counter", set()),
    "pool_connections": ("gauge", {"pool", "state"}),
    "pool_max_connections": ("gauge", {"pool"}),
    "pool_waiting": ("gauge", {"pool"}),
    "pool_up": ("gauge", {"pool"}),
    "pool_opened": ("counter", {"pool"}),
    "pool_dropped": ("counter", {"pool"}),
    "pool_refused": ("counter", {"pool"}),
    "retries": ("counter", set()),
    "server_choices": ("counter", {"choice"}),
    "replica_lag_versions": ("gauge", {"pool"}),
    "listen_connected": ("gauge", set()),
    "listen_hints": ("counter", set()),
    "listen_ignored": ("counter", set()),
    "listen_losses": ("counter", set()),
    "listen_caught_up": ("counter", set()),
    "history_breaks": ("counter", set()),
    "mirror_last_success_timestamp_seconds": ("gauge", set()),
}


async def test_every_metric_is_there_with_its_labels(database: Database) -> None:
    """Also metrics without a value yet, if their settings are on."""
    fill_topics(database)
    replica = database.dsn
    async with serving(database.dsn, replicas=[replica]) as broker:
        assert sorted(await broker.list()) == TOPICS
        broker.service.metrics.queries.failure("other")
        mirrors = present(broker.service.mirrors)
        await eventually(lambda: mirrors.last_success is not None, what="the mirrors were looked at")
        found = {
            metric.name.removeprefix("broker_core_postgres_"): (
                metric.type,
                {label for each in metric.samples for label in each.labels},
            )
            for metric in broker.service.metrics.collect()
        }
        assert broker.metric("queries_total", plan="namespace", outcome="listed") == 1
        assert broker.metric("query_rows_sum") == len(TOPICS)
        assert broker.metric("server_choices_total", choice="replica") == 1
        assert broker.metric("replica_lag_versions", pool="replica_1") == 0
    assert found == METRICS


async def test_they_are_scraped_with_the_brokers_under_the_plugins_name(database: Database) -> None:
    plugin = PostgresPlugin()

    class Handle:
        metrics_registry = PluginRegistryOfMetrics("my-postgres")

        def topics_changed(self, _namespace: object) -> None:
            return

        def report_problems(self, _problems: object) -> None:
            return

    handle = Handle()
    await plugin.broker_core_startup(handle, PostgresSettings(dsn=database.dsn))
    try:
        names = {metric.name for metric in handle.metrics_registry.collect()}
        assert "broker_core_my_postgres_pool_up" in names
    finally:
        await plugin.broker_core_shutdown()


async def test_nothing_that_names_anything_is_a_label() -> None:
    service = PostgresService(PostgresSettings(dsn="postgresql://me@secret-host:1/secret-database"))
    registry = CollectorRegistry()
    service.metrics.register(registry)
    service.metrics.watch(service.server_pools, service.listener, VersionHistory())
    text = "".join(str(metric) for metric in registry.collect())
    assert "secret" not in text
    await service.close()
