"""The broker as plugins see it: versions, changes, questions, and dropping cached answers."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import Gauge, generate_latest

from broker_core import ListingRequest, TopicListingResult, hookimpl
from broker_core.broker import Broker
from broker_core.catalog import SqliteCatalog
from broker_core.catalog.store.change_log_reader import CatalogLogReader
from broker_core.change_log import Changes
from broker_core.client import LookupSession, ServerRefused
from broker_core.errors import InvalidName, ListingFailed
from broker_core.names import NamespaceName, TopicName
from broker_core.settings import Settings
from tests.support.eventually import eventually
from tests.support.fake_cluster import FakeCluster
from tests.support.narrowed import of_type


class Curious:
    """Keeps the handle; answers one namespace from a list that is shared by all, under one version."""

    def __init__(self) -> None:
        self.broker: Any = None
        self.size: Any = None
        self.topics = [f"persistent://public/kept/t-{number}" for number in range(600)]

    @hookimpl
    async def broker_core_startup(self, broker: Any) -> None:
        self.broker = broker
        self.size = Gauge("broker_core_curious_size", "Topics.", registry=broker.metrics_registry)
        self.size.set(len(self.topics))

    @hookimpl
    async def broker_core_list_topics(self, request: ListingRequest) -> TopicListingResult | None:
        if str(request.namespace) != "public/kept":
            return None
        return TopicListingResult.success(self.topics, version="same")


def settings(folder: Path, **tables: Any) -> Settings:
    catalog = {"path": folder / "topics.sqlite"}
    return Settings.model_validate({"pulsar": {"listen": "127.0.0.1:0"}, "catalog": catalog} | tables)


async def test_version_and_changes_are_those_of_the_catalogue(tmp_path: Path) -> None:
    plugin = Curious()
    async with Broker(settings(tmp_path), plugins={"curious": plugin}) as broker:
        assert broker.catalog is not None
        before = await asyncio.to_thread(plugin.broker.version, "public/default")
        broker.catalog.create(TopicName.parse("persistent://public/default/new"))
        after = await asyncio.to_thread(plugin.broker.version, "public/default")
        changes = await asyncio.to_thread(plugin.broker.changes, "public/default", before)
    assert after.number == before.number + 1
    assert [str(change.name) for change in of_type(changes, Changes)] == ["persistent://public/default/new"]
    with pytest.raises(InvalidName):
        plugin.broker.version("not a namespace")


async def test_questions_are_counted_without_who_asked(tmp_path: Path) -> None:
    plugin = Curious()
    async with Broker(settings(tmp_path), plugins={"curious": plugin}) as broker:
        host, port = broker.pulsar_address
        async with LookupSession(f"pulsar://{host}:{port}") as client:
            for _ in range(3):
                await client.get_topics(
                    "public/default", pattern="public/default/a.*", properties={"secret": "x"}
                )
            await client.get_topics("public/default")
        first, second = plugin.broker.questions()
    assert (first.topics_pattern, first.count, first.properties) == ("public/default/a.*", 3, ())
    assert (second.topics_pattern, second.count) == (None, 1)


async def test_the_properties_that_select_are_the_catalogues(tmp_path: Path) -> None:
    plugin = Curious()
    catalog = {"path": tmp_path / "topics.sqlite", "property_keys": ["team"]}
    async with Broker(settings(tmp_path, catalog=catalog), plugins={"curious": plugin}):
        assert plugin.broker.selecting_keys == {"team"}


async def test_what_a_plugin_says_is_wrong_is_shown_until_it_is_well(tmp_path: Path) -> None:
    plugin = Curious()
    async with Broker(settings(tmp_path), plugins={"curious": plugin}) as broker:
        dispatcher = broker.pipeline.dispatcher
        (shown,) = dispatcher.describe_without_errors()
        assert (shown["state"], shown["problems"]) == ("enabled", [])
        plugin.broker.report_problems(["orders.seg is cut short"])
        (shown,) = dispatcher.describe_without_errors()
        assert (shown["state"], shown["problems"]) == ("error", ["orders.seg is cut short"])
        plugin.broker.report_problems([])
        (shown,) = dispatcher.describe_without_errors()
        assert (shown["state"], shown["problems"]) == ("enabled", [])


async def test_a_plugin_that_is_well_again_is_asked_at_once(tmp_path: Path) -> None:
    plugin = Curious()
    away = plugin.topics[0]

    async def outcome(client: LookupSession) -> str:
        try:
            return str(len(await client.get_topics("public/kept", pattern=f"{away}.*")))
        except ServerRefused as refused:
            return refused.message

    async with Broker(settings(tmp_path), plugins={"curious": plugin}) as broker:
        host, port = broker.pulsar_address
        async with LookupSession(f"pulsar://{host}:{port}") as client:
            plugin.topics.append("no name")
            for _ in range(5):
                assert "is not asked for now" not in await outcome(client)
            assert "is not asked for now" in await outcome(client)
            plugin.broker.report_problems(["a list that is spoilt"])
            assert "is not asked for now" in await outcome(client)
            plugin.topics.pop()
            plugin.broker.report_problems([])
            assert int(await outcome(client)) > 0
            # To say so for a second time is no news.
            plugin.topics.append("no name")
            plugin.broker.topics_changed("public/kept")
            for _ in range(5):
                await outcome(client)
            plugin.broker.report_problems([])
            assert "is not asked for now" in await outcome(client)


async def test_kept_answers_are_forgotten_when_the_plugin_says_so(tmp_path: Path) -> None:
    plugin = Curious()
    async with Broker(settings(tmp_path), plugins={"curious": plugin}) as broker:
        host, port = broker.pulsar_address
        async with LookupSession(f"pulsar://{host}:{port}") as client:
            assert len(await client.get_topics("public/kept")) == 600
            plugin.topics.append("persistent://public/kept/one-more")
            # The same version is the same answer: the plugin's word.
            assert len(await client.get_topics("public/kept")) == 600
            plugin.broker.topics_changed("public/other")
            assert len(await client.get_topics("public/kept")) == 600
            plugin.broker.topics_changed("public/kept")
            assert len(await client.get_topics("public/kept")) == 601


async def test_all_namespaces_and_any_thread(tmp_path: Path) -> None:
    plugin = Curious()
    async with Broker(settings(tmp_path), plugins={"curious": plugin}) as broker:
        host, port = broker.pulsar_address

        async def size(client: LookupSession) -> int:
            return len(await client.get_topics("public/kept"))

        def grown(number: int) -> int:
            plugin.topics.append(f"persistent://public/kept/more-{number}")
            return len(plugin.topics)

        async with LookupSession(f"pulsar://{host}:{port}") as client:
            assert await size(client) == 600
            for number, namespace in enumerate([None, "public/kept", NamespaceName("public", "kept")]):
                expected = grown(number)
                assert await size(client) == expected - 1
                await asyncio.to_thread(plugin.broker.topics_changed, namespace)
                assert await size(client) == expected
            expected = grown(9)
            plugin.broker.topics_changed(None)
            assert await size(client) == expected


async def test_problems_are_told_from_any_thread(tmp_path: Path) -> None:
    plugin = Curious()
    async with Broker(settings(tmp_path), plugins={"curious": plugin}) as broker:
        found = ["the index is old"]
        await asyncio.to_thread(plugin.broker.report_problems, found)
        found.append("what was not told")
        (shown,) = broker.pipeline.dispatcher.describe_without_errors()
        assert shown["problems"] == ["the index is old"]
        plugin.broker.report_problems("a text is one problem")
        (shown,) = broker.pipeline.dispatcher.describe_without_errors()
        assert shown["problems"] == ["a text is one problem"]


@pytest.mark.parametrize("namespace", [5, b"public/kept", ["public/kept"]], ids=repr)
async def test_what_is_no_namespace_says_what_is(tmp_path: Path, namespace: Any) -> None:
    plugin = Curious()
    async with Broker(settings(tmp_path), plugins={"curious": plugin}):
        for call in (plugin.broker.topics_changed, plugin.broker.version):
            with pytest.raises(TypeError, match=r"a namespace is a string such as 'tenant/namespace'"):
                call(namespace)
        with pytest.raises(InvalidName):
            plugin.broker.topics_changed("kept")
        with pytest.raises(TypeError, match="problems are a list of strings"):
            await asyncio.to_thread(plugin.broker.report_problems, None)


def test_after_the_end_there_is_nobody_to_tell(tmp_path: Path) -> None:
    plugin = Curious()

    async def run() -> None:
        async with Broker(settings(tmp_path), plugins={"curious": plugin}):
            pass
        plugin.broker.topics_changed("public/kept")
        plugin.broker.report_problems("too late")

    asyncio.run(run())  # the loop is closed after this
    plugin.broker.topics_changed(None)
    plugin.broker.report_problems(["too late"])


class Holder:
    """Holds topics in a catalogue of its own, and offers its log."""

    def __init__(self, path: Path) -> None:
        self.catalog = SqliteCatalog(path)
        self.log: Any = None

    @hookimpl
    async def broker_core_change_log(self) -> Any:
        self.log = CatalogLogReader(self.catalog)
        self.log.name = "holder"
        return self.log

    @hookimpl
    async def broker_core_shutdown(self) -> None:
        self.log.close()
        self.catalog.close()


async def test_change_logs_are_the_catalogues_and_those_of_plugins(tmp_path: Path) -> None:
    follower, holder = Curious(), Holder(tmp_path / "holder.sqlite")
    namespace = NamespaceName.parse("public/default")
    async with Broker(settings(tmp_path), plugins={"curious": follower, "holder": holder}) as broker:
        assert broker.catalog is not None
        logs = follower.broker.change_logs()
        assert [log.name for log in logs] == ["catalog", "holder"]
        before = [await log.version(namespace) for log in logs]
        broker.catalog.create(TopicName.parse("persistent://public/default/new"))
        holder.catalog.create(TopicName.parse("persistent://public/default/held"))
        changes = [await log.changes(namespace, since) for log, since in zip(logs, before, strict=True)]
    assert [[str(change.name) for change in some] for some in changes] == [
        ["persistent://public/default/new"],
        ["persistent://public/default/held"],
    ]


async def test_metrics_of_a_plugin_are_scraped_until_it_is_shut_down(tmp_path: Path) -> None:
    plugin = Curious()
    async with Broker(settings(tmp_path), plugins={"curious": plugin}) as broker:
        registry = broker.pipeline.metrics.registry
        assert b"broker_core_curious_size 600.0" in generate_latest(registry)
    assert b"broker_core_curious" not in generate_latest(registry)


async def test_before_a_cluster_the_log_is_of_what_the_gateway_holds(tmp_path: Path) -> None:
    plugin = Curious()
    async with FakeCluster() as cluster:
        cluster.topics["public/default"] = ["persistent://public/default/old"]
        tables = settings(tmp_path, upstream={"service_url": cluster.url})
        async with Broker(tables, plugins={"curious": plugin}) as broker:
            (log,) = plugin.broker.change_logs()
            assert (log.name, await log.catalog_id()) != ("catalog", "")
            with pytest.raises(RuntimeError, match="from a thread"):
                plugin.broker.version("public/default")
            since = await asyncio.to_thread(plugin.broker.version, "public/default")
            cluster.topics["public/default"].append("persistent://public/default/new")
            host, port = broker.pulsar_address
            async with LookupSession(f"pulsar://{host}:{port}") as client:
                await client.get_topics("public/default")  # of after the change: the first of a connection is
            told = await asyncio.to_thread(plugin.broker.changes, "public/default", since)
            assert [str(change.name) for change in told] == ["persistent://public/default/new"]


async def test_a_gateway_that_holds_nothing_has_no_change_log(tmp_path: Path) -> None:
    plugin = Curious()
    upstream = {"service_url": "pulsar://127.0.0.1:1", "snapshots": {"mode": "off"}}
    async with Broker(settings(tmp_path, upstream=upstream), plugins={"curious": plugin}):
        assert plugin.broker.change_logs() == ()
        with pytest.raises(ListingFailed, match="no change log"):
            plugin.broker.version("public/default")


async def test_tasks_run_beside_the_hooks_and_end_before_any_plugin_does(tmp_path: Path) -> None:
    seen: list[str] = []

    class Beside:
        def __init__(self, name: str) -> None:
            self.name = name
            self.broker: Any = None

        @hookimpl
        def broker_core_startup(self, broker: Any) -> None:  # in a thread
            self.broker = broker
            broker.spawn(self.follow, name="follow")
            with pytest.raises(ValueError, match="is there already"):
                broker.spawn(self.follow, name="follow")

        async def follow(self) -> None:
            seen.append(f"{self.name} runs")
            try:
                await asyncio.Event().wait()
            finally:
                seen.append(f"{self.name} ends")

        @hookimpl
        async def broker_core_shutdown(self) -> None:
            seen.append(f"{self.name} shut down")

    one, two = Beside("one"), Beside("two")
    async with Broker(settings(tmp_path), plugins={"one": one, "two": two}) as broker:
        await eventually(lambda: len(seen) == 2)
        one.broker.spawn(_dies, name="dies", restart=False)
        dispatcher = broker.pipeline.dispatcher
        await eventually(lambda: dispatcher.describe_without_errors()[0]["state"] == "error")
        shown, other = dispatcher.describe_without_errors()
        assert shown["problems"] == ["task 'dies' failed: LookupError"]
        assert [(task["name"], task["state"]) for task in shown["tasks"]] == [
            ("follow", "running"),
            ("dies", "failed"),
        ]
        assert "which" not in str(shown)
        assert other["state"] == "enabled"
        assert dispatcher.describe()[0]["tasks"][1]["last_error"] == "LookupError: which"
        assert ("one", "spawn:follow") in dispatcher.loop_times()
    assert seen[2:] == ["one ends", "two ends", "two shut down", "one shut down"]
    with pytest.raises(RuntimeError, match="the broker stops"):
        one.broker.spawn(one.follow, name="late")


async def _dies() -> None:
    raise LookupError("which")
