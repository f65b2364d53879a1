"""The plugin as the core loads it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import typer

from broker_core import ListingRequest
from broker_core.client import LookupSession
from broker_core.names import Mode, NamespaceName
from broker_core.plugins import PluginRegistry
from broker_core.settings import LimitsSettings
from broker_core.testing import serve
from broker_core_postgres.listing import lister as lister_of_topics
from broker_core_postgres.listing import listing_sql as statements
from broker_core_postgres.listing import pages
from broker_core_postgres.plugin import COMMANDS, PostgresPlugin
from broker_core_postgres.settings import PostgresSettings
from tests.postgres.listing.lister_setup import QUIET, fill
from tests.support.narrowed import present
from tests.support.postgres_server import Database
from tests.support.pulsar_serving import serving
from tests.support.served import Served


def test_the_entry_point_is_a_plugin_without_warnings() -> None:
    registry = PluginRegistry.load(["postgres"], {"postgres": {"property_keys": ["region"]}})
    plugin = registry["postgres"]
    assert plugin.distribution == "broker-core-postgres"
    assert plugin.depends_on == {"pattern", "properties"}
    assert registry.warnings == []
    assert isinstance(plugin.options.settings, PostgresSettings)


async def test_a_listing_by_property_from_the_settings_alone(database: Database, tmp_path: Path) -> None:
    await fill(
        database,
        "acme/orders",
        [("persistent", "a", {"region": "eu"}), ("persistent", "b", {"region": "us"})],
    )
    settings: dict[str, dict[str, Any]] = {
        "catalog": {"path": str(tmp_path / "topics.sqlite")},
        "plugins": {
            "enabled": ["postgres"],
            "postgres": {"dsn": database.dsn, "property_keys": ["region"], "on_failure": "error"},
        },
    }
    with Served(tmp_path / "served", settings) as served:
        async with LookupSession(served.service_url) as client:
            answer = await client.get_topics(
                "acme/orders", Mode.PERSISTENT, properties={"region": "eu", "application": "x"}
            )
            assert list(answer.topics) == ["persistent://acme/orders/a"]
            # Never loaded: the catalogue answers.
            assert list((await client.get_topics("acme/other", Mode.PERSISTENT)).topics) == []


async def test_an_answer_that_was_given_twice_is_kept_while_its_version_is_the_same(
    database: Database,
) -> None:
    await fill(database, "acme/orders", [("persistent", name, {}) for name in ("a", "b")])
    table = {"postgres": {"dsn": database.dsn}}
    async with serve(plugins={"postgres": PostgresPlugin()}, settings={"plugins": table}) as server:
        registry = server.broker.pipeline.metrics.registry
        labels = {"plugin": "postgres", "hook": "list_topics", "outcome": "success"}

        def asked() -> float | None:
            return registry.get_sample_value("broker_core_listing_plugin_calls_total", labels)

        for times in (1, 2, 2, 2):
            assert sorted((await server.list("acme/orders")).topics) == [
                "persistent://acme/orders/a",
                "persistent://acme/orders/b",
            ]
            assert asked() == times
        await fill(database, "acme/orders", [("persistent", "c", {})])
        for _ in range(3):
            assert len((await server.list("acme/orders")).topics) == 3, (
                "at once, whether or not a hint has come"
            )
            assert asked() in (3, 4)  # an answer that meets the hint is not kept: the next one is
        database.sql("SELECT broker_core.forget_namespace('acme/orders')")
        assert not (await server.list("acme/orders")).topics, "of the catalogue"


async def test_topics_are_described_from_the_database(database: Database) -> None:
    await fill(
        database,
        "acme/orders",
        [
            ("persistent", "a", {"region": "eu"}),
            *(("persistent", f"b-partition-{number}", {}) for number in (0, 1, 6)),
        ],
    )
    table = {"postgres": {"dsn": database.dsn}}
    async with serve(plugins={"postgres": PostgresPlugin()}, settings={"plugins": table}) as server:
        request = ListingRequest(
            NamespaceName.parse("acme/orders"),
            Mode.PERSISTENT,
            wants=frozenset({"partitions", "topic_id", "properties"}),
        )
        answer = await server.broker.pipeline.answer(request)
        try:
            rows = present(answer.details).to_pylist()
        finally:
            answer.release()
        assert [(row["topic"].rpartition("/")[2], row["partitions"], row["properties"]) for row in rows] == [
            ("a", 0, {"region": "eu"}),
            ("b", 7, {}),
        ]
        assert len({row["topic_id"] for row in rows}) == 2
        assert await server.partitions("persistent://acme/orders/b") == 7, "as clients ask for it"
        assert await server.partitions("persistent://acme/orders/a") == 0


async def test_the_metrics_of_the_plugin_are_the_broker_s(database: Database) -> None:
    table = {"postgres": {"dsn": database.dsn, "property_keys": ["region"]}}
    async with serve(plugins={"postgres": PostgresPlugin()}, settings={"plugins": table}) as server:
        await server.list("acme/orders", properties={"region": "eu", "owner": "me"})
        registry = server.broker.pipeline.metrics.registry
        assert registry.get_sample_value("broker_core_postgres_ignored_properties_total") == 1
        labels = {"plan": "search", "outcome": "not_loaded"}
        assert registry.get_sample_value("broker_core_postgres_queries_total", labels) == 1


async def test_its_bounds_are_live(database: Database) -> None:
    plugin, table = PostgresPlugin(), {"dsn": database.dsn, "pool_max": 2}
    async with serve(plugins={"postgres": plugin}, settings={"plugins": {"postgres": table}}) as server:
        pools = present(plugin.service).server_pools

        async def timeout() -> str:
            async with pools.acquire() as connection:
                return str(await connection.fetchval("SHOW statement_timeout"))

        async with pools.acquire() as in_use:
            assert await timeout() == "8s"
            other = {**table, "statement_timeout": "3s", "pool_max": 3, "deadline": "4s"}
            dispatcher = server.broker.pipeline.dispatcher
            put_in_force = await dispatcher.prepare_settings({"postgres": (other, other)})
            assert await timeout() == "8s"
            put_in_force()
            assert await timeout() == "3s"
            assert await in_use.fetchval("SHOW statement_timeout") == "8s"
        assert await timeout() == "3s"
        assert pools.primary.settings.pool_max == 3
        assert dispatcher.registry["postgres"].options.deadline == 4.0


async def test_one_instance_serves_one_broker(database: Database) -> None:
    plugin = PostgresPlugin()
    settings = PostgresSettings(dsn=database.dsn)
    await plugin.broker_core_startup(None, settings)
    try:
        assert plugin.broker_core_change_log() is not None
        with pytest.raises(RuntimeError, match="serves a broker already"):
            await plugin.broker_core_startup(None, settings)
    finally:
        await plugin.broker_core_shutdown()
    await plugin.broker_core_shutdown()


def test_all_commands_are_there() -> None:
    app = typer.Typer()
    PostgresPlugin().broker_core_commands(app)
    assert {command.name for command in app.registered_commands} == set(COMMANDS)


async def test_listings_larger_than_the_memory_take_turns(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (statements, pages):
        monkeypatch.setattr(module, "PAGE_NAMES", 200)
    monkeypatch.setattr(pages, "_SEARCH_PAGE", 4096)
    monkeypatch.setattr(lister_of_topics, "_FIRST_PAGE", 4096)
    database.sql(
        "INSERT INTO broker_core.topics (namespace, local_name, properties) "
        """SELECT 'acme/orders', 'topic-' || g, '{"region": "eu"}' FROM generate_series(1, 3000) g"""
    )
    table = {"dsn": database.dsn, "property_keys": ["region"], "deadline": "25s", "pool_max": 2}
    limits = LimitsSettings(heap_permits=150_000, permit_timeout=60)  # bytes: one such listing takes 100,000
    async with serving(
        plugins={"postgres": PostgresPlugin()}, tables={"postgres": table}, limits=limits, options=QUIET
    ) as s:

        async def ask(number: int) -> int:
            client = await s.client()
            properties = {"region": "eu"} if number % 2 else None
            answer = await client.ask("acme/orders", pattern="acme/orders/topic-.*", properties=properties)
            return len(answer.topics)

        assert await asyncio.gather(*(ask(number) for number in range(6))) == [3000] * 6
        gone = await s.client()
        await gone.send(gone.question("acme/orders")[1])
        gone.close()
        # `serving` checks that nothing is held at the end.
