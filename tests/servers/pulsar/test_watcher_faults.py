"""Watchers while clients read slowly, connections break and clusters fail: truth or error, never fewer topics."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from broker_core.broker import Broker
from broker_core.broker.pulsar_gateway import Gateway
from broker_core.errors import ServerError
from broker_core.settings import Settings
from broker_core.upstream.snapshots import SnapshotLister
from tests.servers.pulsar.test_client_watchers import ALL, broker, catalog_of, sample, topic, watching
from tests.support.eventually import eventually
from tests.support.fake_cluster import FakeCluster
from tests.support.raw_client import Closed, RawClient
from tests.support.raw_client import Refused as RefusedByServer
from tests.support.watching_client import WatchingClient


async def has_all(opened: Broker, client: WatchingClient, pattern: str) -> None:
    """A watcher comes to what a listing has."""
    async with await RawClient.open(opened.pulsar_address) as asking:
        listed = await asking.ask("public/default", pattern=pattern)
    assert (await client.until(listed.topics)).hash == listed.topics_hash


@pytest.mark.parametrize("changes", [300, pytest.param(5000, marks=pytest.mark.long)])
async def test_slow_reconnecting_and_overflowing_watchers_come_to_what_a_listing_has(
    tmp_path: Path, changes: int
) -> None:
    chosen, pattern = random.Random(changes), "public/default/[ab].*"
    async with (
        broker(tmp_path) as opened,
        watching(opened) as quick,
        watching(opened, receive_buffer=4096) as slow,
        watching(opened, receive_buffer=4096) as behind,
    ):
        catalog, present = catalog_of(opened), dict[str, None]()
        moving = await WatchingClient.open(opened.pulsar_address)
        for client in (quick, slow, behind, moving):
            await client.watch(pattern)
        for number in range(changes):
            local = f"{chosen.choice('abc')}-{'n' * 200}-{chosen.randint(0, 30)}"
            if local in present:
                catalog.delete(topic(local))
                del present[local]
            else:
                catalog.create(topic(local), partitions=chosen.choice((0, 0, 3, 40)))
                present[local] = None
            if (
                number % 100 == 50
            ):  # a client whose connection breaks, and that brings the hash of what it had
                had = moving.watched[7]
                moving.client.close()
                moving = await WatchingClient.open(opened.pulsar_address)
                moving.watched[7] = had
                await moving.watch(pattern, topics_hash=had.hash)
            if number % 60 == 30:
                await has_all(opened, quick, pattern)
            if number % 200 == 100:
                await has_all(opened, slow, pattern)
        for client in (quick, slow, moving):
            await has_all(opened, client, pattern)
        try:  # what it did not read all the time is a part of the truth, and then the truth, or its end
            await has_all(opened, behind, pattern)
        except Closed:
            reasons = ("slow", "stalled")  # the second one where it is 15 s until somebody reads
            assert any(sample(opened, "connections_closed_total", reason=reason) for reason in reasons)
        moving.client.close()


# -- behind a gateway


@asynccontextmanager
async def gateway(tmp_path: Path, cluster: FakeCluster, max_age: str = "1s") -> AsyncIterator[Broker]:
    values = {
        "pulsar": {"listen": "127.0.0.1:0"},
        "upstream": {"service_url": cluster.url, "snapshots": {"max_age": max_age}},
        "shrink_guard": {"file": str(tmp_path / "guard.txt")},
    }
    async with Broker(Settings.model_validate(values)) as opened:
        yield opened


async def test_a_cluster_that_answers_too_little_for_a_while_costs_no_client_a_topic(tmp_path: Path) -> None:
    names = {str(topic(f"t-{number:03}")) for number in range(100)}
    async with (
        FakeCluster(topic_watchers=True, reconcile=True) as cluster,
        gateway(tmp_path, cluster) as opened,
        watching(opened) as client,
    ):
        cluster.topics["public/default"] = sorted(names)
        watched = await client.watch(ALL)
        assert watched.topics == names
        await eventually(lambda: bool(cluster.watchers))
        cluster.answers = 0.1
        cluster.lose_watchers()  # so that the gateway lists again
        for _ in range(3):
            async with await RawClient.open(opened.pulsar_address) as asking:
                with pytest.raises(RefusedByServer, match="90 of 100 topics") as refused:
                    await asking.ask("public/default")
                assert refused.value.code is ServerError.MetadataError
        with pytest.raises(RefusedByServer, match="90 of 100 topics"):
            async with watching(opened) as other, asyncio.timeout(60):
                while (await other.watch(ALL)).topics == names:  # which is not max_age old
                    await other.close_watcher()
        with pytest.raises(RefusedByServer, match="90 of 100 topics"):
            async with asyncio.timeout(60):
                while True:
                    await client.watch(ALL, topics_hash="00000000")
                    assert watched.topics == names
        assert (watched.topics, watched.updates) == (names, 0)
        cluster.answers = 1.0
        new = str(topic("t-new"))
        cluster.change("public/default", new=[new])
        async with await RawClient.open(opened.pulsar_address) as asking:
            assert set((await asking.ask("public/default")).topics) == names | {new}
        await client.until(names | {new})


async def test_a_broker_that_is_killed_in_a_watch_is_an_error_and_then_the_truth(tmp_path: Path) -> None:
    one, two = str(topic("one")), str(topic("two"))
    async with (
        FakeCluster(topic_watchers=True, reconcile=True) as cluster,
        gateway(tmp_path, cluster) as opened,
        watching(opened) as client,
    ):
        cluster.topics["public/default"] = [one]
        watched = await client.watch(ALL)
        await eventually(lambda: bool(cluster.watchers))
        port = cluster.server.port
        cluster.lose_watchers()
        await cluster.server.stop()
        assert watched.topics == {one}
        cluster.topics["public/default"] = [one, two]
        await cluster.server.start(port)
        await client.until({one, two})


async def test_a_hash_that_is_right_is_answered_from_memory_for_max_age(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [str(topic("one")), str(topic("two"))]
    async with (
        FakeCluster(topic_watchers=True, reconcile=True) as cluster,
        gateway(tmp_path, cluster, "1h") as opened,
        watching(opened) as client,
    ):
        cluster.topics["public/default"] = list(names)
        watched = await client.watch(ALL)
        await client.watch(ALL, topics_hash=watched.hash)
        monkeypatch.setattr(SnapshotLister, "list_now", _unasked)
        for _ in range(3):
            await client.watch(ALL, topics_hash=watched.hash)
        assert sample(opened, "watches_total", outcome="reconciled") == 4
        monkeypatch.undo()
        cluster.change("public/default", deleted=names[:1])
        await client.until(names[1:])
        await client.watch(ALL, topics_hash=watched.hash)
        await cluster.server.stop()
        await client.watch(ALL, topics_hash=watched.hash)
        lister = opened.pipeline.lister
        assert isinstance(lister, Gateway)
        assert lister.cluster.snapshots is not None
        loop = asyncio.get_running_loop()
        lister.cluster.snapshots.snapshots.clock = lambda: loop.time() + 3601
        with pytest.raises(RefusedByServer):
            await client.watch(ALL, topics_hash=watched.hash)
        assert watched.topics == set(names[1:])


def _unasked(*_: object) -> None:
    raise AssertionError("it was asked")
