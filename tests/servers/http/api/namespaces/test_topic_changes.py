"""Changes since a version: the reported changes, pages, gaps, waiting, and what plugins hide."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from broker_core.broker import Broker
from broker_core.catalog import Edit, SqliteCatalog, creation
from broker_core.change_log import CatalogVersion, Change, Changes, Gap
from broker_core.names import NamespaceName, TopicName
from broker_core.servers.http.api.bounded_answer import MOST_BYTES
from broker_core.servers.http.api.namespaces import topic_changes
from broker_core.settings import Settings
from tests.support.api_serving import NAMESPACE, ApiServed, api_served, catalog_of
from tests.support.chain_plugins import lists
from tests.support.clock import AGES
from tests.support.eventually import eventually
from tests.support.fake_cluster import FakeCluster
from tests.support.plugins import PluginOf
from tests.support.silent_reader import silent_reader

PATH = f"{NAMESPACE}/changes"


def topic(local: str) -> TopicName:
    return TopicName.parse(f"persistent://public/default/{local}")


async def version(served: ApiServed) -> str:
    said = await served.ask(PATH)
    assert (said.json["since"], said.json["changes"], said.json["more"]) == (None, [], False)
    text: str = said.json["version"]
    return text


async def test_changes_lead_from_a_version_to_the_one_now(served: ApiServed) -> None:
    catalog, since = catalog_of(served), await version(served)
    made = catalog.create(topic("new"), partitions=3, properties={"a": "1"})
    catalog.create(topic("__change_events"))  # no listing has it
    catalog.delete(topic("new-partition-1"))
    catalog.set_properties(topic("new"), {"b": "2"})
    catalog.delete(topic("bills"))
    said = await served.ask(PATH, params={"since": since})
    assert (said.json["since"], said.json["more"]) == (since, False)
    assert said.json["version"] == await version(served)
    told = said.json["changes"]
    assert [(each["operation"], each["topic"].rpartition("/")[2]) for each in told] == [
        ("create", "new"),
        ("update", "new"),
        ("update", "new"),
        ("delete", "bills"),
    ]
    nothing = {"plain": False, "partitions": []}
    assert [each["added"] for each in told[:2]] == [{"plain": False, "partitions": [[0, 2]]}, nothing]
    assert [each["removed"] for each in told[:2]] == [nothing, {"plain": False, "partitions": [[1, 1]]}]
    assert [each["properties"] for each in told] == [{"a": "1"}, {"a": "1"}, {"b": "2"}, {}]
    assert told[3]["removed"] == {"plain": True, "partitions": []}
    assert told[0]["time"] == made.created.isoformat(timespec="milliseconds")


async def test_a_limit_cuts_between_versions(served: ApiServed) -> None:
    catalog, since = catalog_of(served), await version(served)
    for number in range(5):
        catalog.create(topic(f"x{number}"))
    found, more = [], True
    while more:
        said = await served.ask(PATH, params={"since": since, "limit": "2"})
        assert len(said.json["changes"]) <= 2
        found += [each["topic"][-2:] for each in said.json["changes"]]
        since, more = said.json["version"], said.json["more"]
    assert found == [f"x{number}" for number in range(5)]
    assert since == await version(served)


async def test_long_properties_fill_an_answer_before_the_limit_does(served: ApiServed) -> None:
    catalog, since = catalog_of(served), await version(served)
    for number in range(25):
        catalog.create(topic(f"x{number}"), properties={"a": "x" * 60_000})
    found, more, answers = [], True, 0
    while more:
        said = await served.ask(PATH, params={"since": since})
        assert len(said.body) < MOST_BYTES + 500
        found += [each["topic"].rpartition("/x")[2] for each in said.json["changes"]]
        since, more = said.json["version"], said.json["more"]
        answers += 1
    assert (found, answers) == ([str(number) for number in range(25)], 2)
    assert since == await version(served)


async def test_a_version_with_more_than_an_answer_has_is_shown_whole(
    served: ApiServed, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog, since = catalog_of(served), await version(served)
    names = [topic(f"x{number}") for number in range(40)]
    for name in names:
        catalog.create(name, properties={"a": "x" * 60_000})
    catalog.delete_all(names)
    catalog.create(topic("y"))
    said = await served.ask(PATH, params={"since": since, "limit": "40"})
    while len(said.json["changes"]) < 40:
        assert said.json["more"]
        since = said.json["version"]
        said = await served.ask(PATH, params={"since": since, "limit": "40"})
    assert {each["operation"] for each in said.json["changes"]} == {"delete"}
    assert said.json["more"]
    monkeypatch.setattr(topic_changes, "_MOST_ALONE", MOST_BYTES)
    gone = await served.ask(PATH, params={"since": since, "limit": "40"})
    assert (gone.status, gone.json["version"]) == (410, await version(served))
    assert "1,048,576 bytes" in gone.json["detail"]


async def test_silent_readers_of_changes_hold_permits_until_they_go(served: ApiServed) -> None:
    catalog, since = catalog_of(served), await version(served)
    names = [topic(f"x{number}") for number in range(130)]
    made = [Edit(name, creation(name, properties={"a": "x" * 60_000})) for name in names]
    catalog.edit_many(NamespaceName("public", "default"), made)  # one version
    permits = served.broker.pipeline.permits
    path = f"{PATH}?since={since}"
    content = len((await served.ask(path)).body)
    assert content > 7 * MOST_BYTES  # more than the kernel takes
    await eventually(lambda: permits.heap.acquired == 0)
    silent = [await silent_reader(served, path) for _ in range(3)]
    await eventually(lambda: permits.heap.acquired == len(silent) * content)
    for sock in silent:
        sock.close()
    await eventually(lambda: permits.heap.acquired == 0)


async def test_a_gap_says_where_to_begin_anew(served: ApiServed) -> None:
    now = await version(served)
    for since in ("another:3", now.partition(":")[0] + ":999", now.rpartition(".")[0] + ".0000"):
        said = await served.ask(PATH, params={"since": since})
        assert (said.status, said.json["version"]) == (410, now)


@pytest.mark.parametrize("wrong", ["", "7", "a:b"])
async def test_what_is_no_version_is_refused(served: ApiServed, wrong: str) -> None:
    said = await served.ask(PATH, params={"since": wrong})
    assert said.status == 400
    assert "since must be a version" in said.json["detail"]


async def test_a_client_may_wait_for_a_change(served: ApiServed) -> None:
    since = await version(served)
    asked = asyncio.create_task(served.ask(PATH, params={"since": since, "wait": "30"}))
    with SqliteCatalog(catalog_of(served).path) as other:  # of another process
        other.create(topic("new"))
    said = await asked
    assert [each["topic"][-3:] for each in said.json["changes"]] == ["new"]
    at_once = await served.ask(PATH, params={"since": said.json["version"], "wait": "0"})
    assert (at_once.json["changes"], at_once.json["version"]) == ([], said.json["version"])
    ended = await served.ask(PATH, params={"since": said.json["version"], "wait": "1"})
    assert ended.json == at_once.json


async def test_a_server_that_stops_answers_clients_that_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topic_changes, "_LONGEST_WAIT", 3600)
    async with api_served(tmp_path) as served:
        since = await version(served)
        asked = asyncio.create_task(served.ask(PATH, params={"since": since, "wait": "3600"}))
        await eventually(lambda: served.sample("http_requests_under_way") == 1)
        stopped = asyncio.create_task(served.broker.stop(3600))
        await eventually(asked.done, what="the answer of a server that stops")
        said = await asked
        assert (said.status, said.json["changes"], said.json["version"]) == (200, [], since)
        await stopped


async def test_what_plugins_hide_or_list_is_not_told(tmp_path: Path) -> None:
    plugins = {
        "mask": PluginOf(visible=lambda topics: None),
        "lister": lists("persistent://public/default/a"),
    }
    for name, plugin in plugins.items():
        folder = tmp_path / name
        folder.mkdir()
        async with api_served(folder, plugins={name: plugin}) as served:
            said = await served.ask(PATH)
            assert said.status == 409
            assert "follow the listing" in said.json["detail"]


class Log:
    """A change log of a plugin that holds ``public/default``."""

    name = "lister"

    def __init__(self, number: int = 3) -> None:
        self.number = number

    async def catalog_id(self) -> str:
        return "other"

    def version_now(self, namespace: NamespaceName) -> CatalogVersion | None:
        return None

    async def version(self, namespace: NamespaceName) -> CatalogVersion:
        return CatalogVersion("other", self.number)

    async def changes(self, namespace: NamespaceName, since: CatalogVersion) -> Changes | Gap:
        with SqliteCatalog(self.path) as catalog:
            found = catalog.changes(namespace, CatalogVersion(catalog.catalog_id, 0))
        assert isinstance(found, Changes)
        changes: tuple[Change, ...] = tuple(each for each in found if each.version > since.number)
        return Changes(since, CatalogVersion("other", self.number), changes)

    path: Path


@pytest.mark.parametrize(
    ("number", "on", "status"), [(3, ("properties",), 200), (3, ("principal",), 409), (0, (), 409)]
)
async def test_the_log_of_the_plugin_that_lists(
    tmp_path: Path, number: int, on: tuple[str, ...], status: int
) -> None:
    log = Log(number)
    log.path = tmp_path / "topics.sqlite"
    plugin: Any = lists("persistent://public/default/a", on=on)
    plugin.broker_core_change_log = PluginOf(change_log=lambda: log).broker_core_change_log  # type: ignore[attr-defined]
    async with api_served(tmp_path, plugins={"lister": plugin}) as served:
        said = await served.ask(PATH, params={"since": "other:0", "limit": "2"})
        assert said.status == status
        if status == 200:
            assert [each["version"] for each in said.json["changes"]] == [1, 2]
            assert (said.json["version"], said.json["more"]) == ("other:2", True)
            rest = await served.ask(PATH, params={"since": "other:2", "limit": "2"})
            assert [each["version"] for each in rest.json["changes"]] == [3]
            assert (rest.json["version"], rest.json["more"]) == ("other:3", False)


async def test_before_a_cluster_changes_are_what_the_gateway_saw(monkeypatch: pytest.MonkeyPatch) -> None:
    """A watch tells them at once, and a position of before a restart is a gap."""
    monkeypatch.setattr(topic_changes, "_AGAIN", AGES)
    async with FakeCluster(topic_watchers=True, reconcile=True) as cluster:
        cluster.topics["public/default"] = [str(topic("orders-partition-0"))]
        tables: dict[str, Any] = {
            "pulsar": {"listen": "127.0.0.1:0"},
            "http": {"listen": "127.0.0.1:0"},
            "upstream": {"service_url": cluster.url},
        }
        async with aiohttp.ClientSession() as session:
            async with Broker(Settings.model_validate(tables)) as broker:
                served = ApiServed(broker, session)
                since = await version(served)
                await eventually(lambda: len(cluster.watchers) == 1)
                waiting = asyncio.create_task(served.ask(PATH, params={"since": since, "wait": "30"}))
                cluster.change("public/default", new=[str(topic("orders-partition-1"))])
                (told,) = (said := await waiting).json["changes"]
                assert (told["operation"], told["topic"]) == ("update", str(topic("orders")))
                assert told["added"] == {"plain": False, "partitions": [[1, 1]]}
                since = said.json["version"]
            async with Broker(Settings.model_validate(tables)) as broker:
                served = ApiServed(broker, session)
                said = await served.ask(PATH, params={"since": since})
                assert (said.status, said.json["version"]) == (410, await version(served))
            tables["upstream"]["snapshots"] = {"mode": "off"}
            async with Broker(Settings.model_validate(tables)) as broker:
                assert (await ApiServed(broker, session).ask(PATH)).status == 501


async def test_changes_of_a_cluster_are_for_those_it_lets_list() -> None:
    async with FakeCluster() as cluster:
        cluster.topics["public/default"] = [str(topic("orders"))]
        cluster.denied = {""}  # all but the role of the snapshots
        tables = {
            "pulsar": {"listen": "127.0.0.1:0"},
            "http": {"listen": "127.0.0.1:0"},
            "upstream": {"service_url": cluster.url, "snapshots": {"token": "role"}},
        }
        async with Broker(Settings.model_validate(tables)) as broker, aiohttp.ClientSession() as session:
            served = ApiServed(broker, session)
            assert (await served.ask(PATH)).status == 403
            cluster.denied.clear()
            assert (await served.ask(PATH)).status == 200
