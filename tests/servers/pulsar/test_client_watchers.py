"""Watchers over the wire: as a real broker's, through plugins and masks, refused if they cannot be true."""

from __future__ import annotations

import random
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from broker_core import Access, Refused, TopicListingResult
from broker_core.broker import Broker
from broker_core.catalog import CatalogLister, SqliteCatalog
from broker_core.errors import ServerError
from broker_core.names import TopicName
from broker_core.pipeline import Answer, Pipeline
from broker_core.plugin_api.listing_request import ListingRequest
from broker_core.service.following import change_watch, follower, listing_feed
from broker_core.settings import Settings
from broker_core.wire.pulsar import commands
from broker_core.wire.pulsar.messages.pulsar_api_pb2 import BaseCommand
from tests.support.clock import AGES
from tests.support.eventually import eventually
from tests.support.plugins import PluginOf
from tests.support.raw_client import RawClient
from tests.support.raw_client import Refused as RefusedByServer
from tests.support.vectors import watch_steps
from tests.support.watching_client import WatchedTopics, WatchingClient

ALL = "persistent://public/default/.*"


@asynccontextmanager
async def broker(
    tmp_path: Path,
    plugins: dict[str, object] | None = None,
    own: dict[str, Any] | None = None,
    **tables: Any,
) -> AsyncIterator[Broker]:
    values: dict[str, dict[str, Any]] = {
        "pulsar": {"listen": "127.0.0.1:0", "keep_alive": AGES},  # some clients never read
        "catalog": {"path": tmp_path / "c.sqlite"},
    }
    if own is not None:
        values["plugins"] = own
    for name, table in tables.items():
        values[name] = {**values.get(name, {}), **table}
    async with Broker(Settings.model_validate(values), plugins=plugins) as opened:
        yield opened


@asynccontextmanager
async def watching(opened: Broker, **options: Any) -> AsyncIterator[WatchingClient]:
    async with await WatchingClient.open(opened.pulsar_address, **options) as client:
        yield client


def catalog_of(opened: Broker) -> SqliteCatalog:
    assert opened.catalog is not None
    return opened.catalog


def topic(local: str, namespace: str = "public/default") -> TopicName:
    return TopicName.parse(f"persistent://{namespace}/{local}")


def sample(opened: Broker, name: str, **labels: str) -> float:
    return opened.pipeline.metrics.registry.get_sample_value(f"broker_core_{name}", labels) or 0.0


async def test_connected_says_whether_there_are_watchers(tmp_path: Path) -> None:
    for enabled in (True, False):
        async with broker(tmp_path, watchers={"enabled": enabled}) as opened:
            raw = await RawClient.open(opened.pulsar_address, handshake=False)
            await raw.send(commands.connect("Pulsar-Java-v4.2.4"))
            flags = (await raw.receive()).connected.feature_flags
            assert flags.supports_topic_watchers is flags.supports_topic_watcher_reconcile is enabled
            raw.close()
            async with watching(opened) as client:
                if enabled:
                    assert not (await client.watch(ALL)).topics
                else:
                    with pytest.raises(RefusedByServer) as refused:
                        await client.watch(ALL)
                    assert refused.value.code is ServerError.NotAllowedError
                    await client.close_watcher()


# -- as a real broker


class Replay:
    """The recorded steps, asked of this server."""

    def __init__(self, client: WatchingClient, catalog: SqliteCatalog, namespace: str) -> None:
        self.client, self.catalog, self.namespace = client, catalog, namespace

    def pattern(self, local: str) -> str:
        return f"persistent://{self.namespace}/{local}"

    async def step(self, after: str, received: list[dict[str, Any]]) -> None:
        words = after.split()
        if words[0] == "create" and words[1] == "20":
            for number in range(20):
                self.catalog.create(topic(f"a-b{number}", self.namespace))
        elif words[0] == "create":
            partitions = int(words[3]) if "partitions" in words else 0
            self.catalog.create(topic(words[1], self.namespace), partitions=partitions)
        elif words[0] == "delete":
            self.catalog.delete(topic(words[1], self.namespace))
        elif words[0] == "close":
            await self.client.close_watcher(int(words[2]))
        else:
            await self.watch(after, int(words[1]), received[0])
        updates = [each for each in received if each["type"] == BaseCommand.WATCH_TOPIC_UPDATE]
        if updates:
            watched = self.client.watched[7]
            recorded = WatchedTopics(set(watched.topics))
            for each in updates:
                recorded.update(each["new"], each["deleted"], each["topics_hash"])
            assert (await self.client.until(recorded.topics)).hash == updates[-1]["topics_hash"]

    async def watch(self, after: str, watcher_id: int, answer: dict[str, Any]) -> None:
        pattern, topics_hash = self.pattern("a-.*"), None
        if "broken" in after:
            pattern = self.pattern("(")
        elif "over the limit" in after:
            pattern = self.pattern("a" * 201)
        elif "nothing" in after:
            pattern = self.pattern("nothing-.*")
        if "current hash" in after:
            topics_hash = self.client.watched[7].hash
        elif "wrong hash" in after:
            topics_hash = "ffffffff"
        asked = self.client.watch(pattern, self.namespace, watcher_id, topics_hash)
        if answer["type"] == BaseCommand.ERROR:
            with pytest.raises(
                RefusedByServer, match=re.escape(answer["message"].partition(": Unclosed")[0])
            ) as refused:
                await asked
            assert refused.value.code == answer["error"]
            return
        watched = await asked
        assert watched.hash == answer["topics_hash"]
        if answer["topics"]:
            assert watched.topics == set(answer["topics"])


async def test_the_recorded_watcher_of_a_real_broker_is_told_the_same(tmp_path: Path) -> None:
    namespace = "public/watch"
    async with broker(tmp_path, patterns={"max_length": 200}) as opened, watching(opened) as client:
        catalog_of(opened).create(topic("a-1", namespace))
        catalog_of(opened).create(topic("b-1", namespace))
        replay = Replay(client, catalog_of(opened), namespace)
        for step in watch_steps():
            await replay.step(step["after"], step["received"])
        assert sample(opened, "watchers") == 1  # the one that matches nothing
        await client.client.ping()  # nothing more was told


@pytest.mark.parametrize("harm", ["dropped", "doubled", "swapped"])
def test_a_recorded_update_that_is_harmed_is_seen(harm: str) -> None:
    updates = [
        each
        for step in watch_steps()
        for each in step["received"]
        if each["type"] == BaseCommand.WATCH_TOPIC_UPDATE
    ]

    def joined(those: list[dict[str, Any]]) -> None:
        watched = WatchedTopics({"persistent://public/watch/a-1"})
        for each in those:
            watched.update(each["new"], each["deleted"], each["topics_hash"])

    joined(updates)
    for place in range(len(updates) - 1):
        changed = list(updates)
        if harm == "dropped":
            del changed[place]
        elif harm == "doubled":
            changed.insert(place, changed[place])
        else:
            changed[place : place + 2] = reversed(changed[place : place + 2])
        with pytest.raises(AssertionError):
            joined(changed)


# -- plugins, masks, rights


async def test_who_may_not_list_may_not_watch_and_a_lost_right_ends_it(tmp_path: Path) -> None:
    refused: set[str] = set()

    async def broker_core_authorize(access: Access) -> Refused | None:
        return Refused("not for you") if access.asker.client_version in refused else None

    gate = PluginOf(authorize=broker_core_authorize)
    async with broker(tmp_path, {"gate": gate}) as opened:
        refused.add("Pulsar-Java-v4.2.4-b")
        async with watching(opened, client_version="Pulsar-Java-v4.2.4-b") as client:
            with pytest.raises(RefusedByServer) as told:
                await client.watch(ALL)
            assert told.value.code is ServerError.AuthorizationError
        async with watching(opened, client_version="Pulsar-Java-v4.2.4-a") as client:
            await client.watch(ALL)
            catalog_of(opened).create(topic("one"))
            await client.until({str(topic("one"))})
            refused.add("Pulsar-Java-v4.2.4-a")
            catalog_of(opened).create(topic("two"))
            assert not await client.client.closed()  # nothing was told any more
        await eventually(lambda: sample(opened, "watchers") == 0)


# -- refusals


async def test_a_watch_is_refused_where_properties_decide(tmp_path: Path) -> None:
    def broker_core_list_topics() -> TopicListingResult:
        return TopicListingResult.pass_through()

    undeclared = PluginOf(list_topics=broker_core_list_topics)
    async with broker(tmp_path, {"lister": undeclared}) as opened, watching(opened) as client:
        with pytest.raises(RefusedByServer) as refused:
            await client.watch(ALL)
        assert refused.value.code is ServerError.NotAllowedError
        assert "'lister'" in refused.value.message
        assert sample(opened, "watches_refused_total", reason="properties", client="polls") == 1
    async with (
        broker(tmp_path, {"lister": undeclared}) as opened,
        watching(opened, client_version="Pulsar-Java-v4.0.0") as client,
    ):
        with pytest.raises(RefusedByServer):
            await client.watch(ALL)
        assert sample(opened, "watches_refused_total", reason="properties", client="stuck") == 1


async def test_values_of_selecting_properties_end_watches(tmp_path: Path) -> None:
    async with broker(tmp_path, catalog={"property_keys": ["region"]}) as opened, watching(opened) as client:
        catalog = catalog_of(opened)
        catalog.create(topic("one"), properties={"other": "1"})
        assert (await client.watch(ALL)).topics == {str(topic("one"))}
        catalog.set_properties(topic("one"), {"region": "eu"})
        await client.client.closed()
        async with watching(opened) as again:
            with pytest.raises(RefusedByServer) as refused:
                await again.watch(ALL)
            assert refused.value.code is ServerError.NotAllowedError
            assert "catalog.property_keys" in refused.value.message
            catalog.set_properties(topic("one"), {})
            assert (await again.watch(ALL)).topics == {str(topic("one"))}


@pytest.mark.parametrize(
    ("pattern", "namespace", "code", "text"),
    [
        ("public/default/(", "public/default", ServerError.InvalidTopicName, "Invalid topics pattern"),
        ("public/default/(?!x).*", "public/default", ServerError.NotAllowedError, "Unable to create"),
        ("a" * 1025, "public/default", ServerError.NotAllowedError, "Pattern longer than maximum: 1024"),
        # Without its scheme it is short enough, but it is compiled with it.
        (
            "persistent://public/default/" + "a" * 1000,
            "public/default",
            ServerError.NotAllowedError,
            "longer than the maximum of 1024",
        ),
        (".*", "public", ServerError.InvalidTopicName, "namespace"),
    ],
)
async def test_a_pattern_that_cannot_be_watched_is_refused(
    tmp_path: Path, pattern: str, namespace: str, code: ServerError, text: str
) -> None:
    async with broker(tmp_path) as opened, watching(opened) as client:
        with pytest.raises(RefusedByServer, match=re.escape(text)) as refused:
            await client.watch(pattern, namespace)
        assert refused.value.code is code
        assert sample(opened, "watchers") == 0
        await client.client.ping()


async def test_without_evaluation_nothing_is_watched(tmp_path: Path) -> None:
    async with broker(tmp_path, patterns={"evaluate": False}) as opened, watching(opened) as client:
        with pytest.raises(RefusedByServer, match="Evaluating subscription patterns is disabled"):
            await client.watch(ALL)


async def test_watchers_are_bounded(tmp_path: Path) -> None:
    async with broker(tmp_path, watchers={"most": 3}) as opened, watching(opened) as client:
        for number in range(3):
            await client.watch(ALL, watcher_id=number)
        with pytest.raises(RefusedByServer) as refused:
            await client.watch(ALL, watcher_id=3)
        assert refused.value.code is ServerError.TooManyRequests  # clients ask again for it
        await client.close_watcher(1)
        await client.watch(ALL, watcher_id=3)


# -- many changes, and clients that do not read


async def test_many_changes_come_in_updates_that_fit(tmp_path: Path) -> None:
    async with broker(tmp_path) as opened, watching(opened) as client:
        catalog = catalog_of(opened)
        catalog.create(topic("one"))
        watched = await client.watch(ALL)
        catalog.create(topic("many-" + "x" * 300), partitions=5000)  # 1.7 MB of names
        names = {f"{topic('many-' + 'x' * 300)}-partition-{number}" for number in range(5000)}
        await client.until({str(topic("one")), *names})
        assert 30 < watched.updates < 200
        catalog.delete(topic("many-" + "x" * 300))
        await client.until({str(topic("one"))})


async def test_a_client_that_does_not_read_is_told_one_difference_and_then_closed(tmp_path: Path) -> None:
    async with broker(tmp_path) as opened, watching(opened, receive_buffer=4096) as client:
        catalog = catalog_of(opened)
        watched = await client.watch(ALL)
        names = set[str]()
        for number in range(12):  # much more than the kernel takes for a client that does not read
            local = f"t{number}-" + "y" * 300
            catalog.create(topic(local), partitions=2000)
            names |= {f"{topic(local)}-partition-{index}" for index in range(2000)}
            if number % 3:
                catalog.delete(topic(local))
                names -= {f"{topic(local)}-partition-{index}" for index in range(2000)}
        await client.until(names)
        assert watched.hash == (await client.watch(ALL, topics_hash=watched.hash)).hash


async def test_watchers_that_do_not_read_leave_room_for_those_that_do(tmp_path: Path) -> None:
    """In a reserve that is full with one update of each of them."""
    async with broker(tmp_path, limits={"direct_permits": 2 * 1024 * 1024}) as opened:
        catalog, reserve = catalog_of(opened), opened.pipeline.permits.reserve
        silent = [await RawClient.open(opened.pulsar_address, receive_buffer=4096) for _ in range(40)]
        for each in silent:
            await each.send(commands.watch_topics(1, 1, "public/default", ".*", None))
            await each.receive()
        async with watching(opened) as client:
            await client.watch(ALL)
            names = set[str]()

            def has_current() -> float:
                return sample(opened, "connections_closed_total", reason="slow")

            for number in range(200):
                local = f"t{number}-" + "y" * 300
                catalog.create(topic(local), partitions=150)
                names |= {f"{topic(local)}-partition-{index}" for index in range(150)}
                assert (await client.until(names)).topics == names
                if has_current():
                    break
            assert has_current(), "no silent client had to make room"
            assert reserve.acquired <= reserve.maximum
            await client.client.ping()
        for each in silent:
            each.close()


@pytest.mark.parametrize("seed", range(3))
async def test_after_random_changes_each_watcher_has_what_a_listing_has(tmp_path: Path, seed: int) -> None:
    chosen = random.Random(seed)
    patterns = [
        ".*",
        "public/default/a.*",
        "public/default/.*-1.*",
        "public/default/b-7",
        "public/default/[ab].*",
    ]
    async with broker(tmp_path) as opened, watching(opened) as client, watching(opened) as other:
        catalog, present = catalog_of(opened), set[str]()
        for number, pattern in enumerate(patterns):
            await client.watch(pattern, watcher_id=number)
        for _ in range(300):
            local = f"{chosen.choice('abc')}-{chosen.randint(0, 30)}"
            if local in present:
                catalog.delete(topic(local))
                present.discard(local)
            else:
                catalog.create(topic(local), partitions=chosen.choice((0, 0, 0, 3)))
                present.add(local)
            if chosen.random() < 0.05:
                await other.watch(chosen.choice(patterns), watcher_id=chosen.randint(0, 5))
            if chosen.random() < 0.1:
                await client.next()
        asking = await RawClient.open(opened.pulsar_address)
        for number, pattern in enumerate(patterns):
            listed = await asking.ask("public/default", pattern=pattern)
            watched = await client.until(listed.topics, number)
            assert watched.hash == listed.topics_hash
        asking.close()


@pytest.mark.parametrize("is_late", [False, True])
async def test_a_hash_that_is_right_costs_no_look_at_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_late: bool
) -> None:
    """The shared looks for changes are enough for watchers; if they are late, a watcher that asks makes one for all."""
    asked: list[object] = []
    list_now = CatalogLister.list_now

    def counted(*question: Any) -> Any:
        asked.append(question)
        return list_now(*question)

    monkeypatch.setattr(change_watch, "_LATE", -1.0 if is_late else 3600.0)
    async with broker(tmp_path) as opened, watching(opened) as client:
        catalog = catalog_of(opened)
        catalog.create(topic("one"))
        watched = await client.watch(ALL)
        await client.watch(ALL, topics_hash=watched.hash)
        monkeypatch.setattr(CatalogLister, "list_now", counted)
        for _ in range(5):
            await client.watch(ALL, topics_hash=watched.hash)
        assert not asked
        assert sample(opened, "watches_total", outcome="reconciled") == 6
        for number in range(20):
            with SqliteCatalog(tmp_path / "c.sqlite") as other:
                other.create(topic(f"more-{number}"))
            await client.watch(ALL, topics_hash=watched.hash)
            await client.until({*watched.topics, str(topic(f"more-{number}"))})


async def test_watchers_of_which_nothing_changes_cost_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Silent watchers are sent nothing, and their questions are not asked again, while another one's topics change."""
    asked: list[str | None] = []
    answer_now = Pipeline.answer_now

    def counted(pipeline: Pipeline, question: ListingRequest) -> Answer | None:
        asked.append(question.topics_pattern)
        return answer_now(pipeline, question)

    async with broker(tmp_path) as opened:
        catalog = catalog_of(opened)
        for number in range(30):
            catalog.create(topic(f"group-{number:02}-first"))
        clients = [await RawClient.open(opened.pulsar_address) for _ in range(90)]
        for number, client in enumerate(clients):
            await client.send(
                commands.watch_topics(
                    1, 1, "public/default", f"public/default/group-{number % 30:02}-.*", None
                )
            )
            assert (await client.receive()).type == BaseCommand.WATCH_TOPIC_LIST_SUCCESS
        monkeypatch.setattr(Pipeline, "answer_now", counted)
        for number in range(5):
            catalog.create(topic(f"group-07-more-{number}"))
            for client in clients[7::30]:
                assert (await client.receive()).type == BaseCommand.WATCH_TOPIC_UPDATE
        assert set(asked) == {"public/default/group-07-.*"}
        assert len(asked) <= 10, (
            "once a change for all watchers of the question, but for those that came between"
        )
        assert sample(opened, "watch_updates_total") == 15
        for client in clients:  # what comes first is the answer to this
            await client.send(commands.ping())
            assert (await client.receive()).type == BaseCommand.PONG
            client.close()


async def test_a_difference_is_made_once_for_all_watchers_of_a_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if it is more than one update, and half of them do not read."""
    made: list[int] = []
    make = follower.joined_updates

    def counted(*asked: Any) -> follower.JoinedUpdates:
        made.append(1)
        return make(*asked)

    monkeypatch.setattr(listing_feed, "joined_updates", counted)
    async with broker(tmp_path) as opened:
        clients = [await RawClient.open(opened.pulsar_address) for _ in range(20)]
        for client in clients:
            await client.send(commands.watch_topics(1, 1, "public/default", ".*", None))
            await client.receive()
        catalog_of(opened).create(topic("o" * 100), partitions=5000)
        for client in clients[::2]:
            told = 0
            while told < 5000:
                told += len((await client.receive()).watchTopicUpdate.new_topics)
        assert 1 <= len(made) <= 3, "a watcher may have asked before all of them came"
        for client in clients:
            client.close()
