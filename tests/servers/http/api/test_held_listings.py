"""Held listings over HTTP and by the operator's socket, at a gateway whose cluster answers a tenth of a namespace."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from structlog.testing import capture_logs

from broker_core import TopicName
from broker_core.broker import Broker
from broker_core.broker.pulsar_gateway import Gateway
from broker_core.catalog import SqliteCatalog
from broker_core.client import LookupSession, ServerRefused
from broker_core.errors import ServerError
from broker_core.settings import Settings
from tests.support.api_serving import NAMESPACE, ApiServed
from tests.support.fake_cluster import FakeCluster
from tests.support.raw_client import Refused
from tests.support.watching_client import WatchingClient

NAMES = [f"persistent://t/n/topic-{index:03d}" for index in range(200)]


class Scene:
    def __init__(self, cluster: FakeCluster, served: ApiServed, client: LookupSession) -> None:
        self.cluster = cluster
        self.served = served
        self.client = client

    async def names(self) -> list[str]:
        """The answer that a client gets; an existing snapshot is too old."""
        lister = self.served.broker.pipeline.lister
        if isinstance(lister, Gateway) and lister.cluster.snapshots is not None:
            live = lister.cluster.snapshots.snapshots
            before = live.clock
            live.clock = lambda: before() + 61
        return sorted((await self.client.get_topics("t/n")).topics)

    async def is_held(self) -> bool:
        refusal: ServerRefused | None = None
        try:
            await self.names()
        except ServerRefused as refused:
            refusal = refused
        if refusal is None:
            return False
        assert refusal.code is ServerError.MetadataError
        assert "The shrink guard holds this listing: 180 of 200 topics of t/n" in refusal.message
        return True


@asynccontextmanager
async def scene_of(mode: str, **tables: Any) -> AsyncIterator[Scene]:
    async with FakeCluster() as cluster:
        cluster.topics["t/n"] = list(NAMES)
        settings = Settings.model_validate(
            {
                "pulsar": {"listen": "127.0.0.1:0"},
                "http": {"listen": "127.0.0.1:0"},
                "upstream": {"service_url": cluster.url, "snapshots": {"mode": mode}},
                **tables,
            }
        )
        async with Broker(settings) as broker, aiohttp.ClientSession() as session:
            host, port = broker.pulsar_address
            async with LookupSession(f"pulsar://{host}:{port}") as client:
                yield Scene(cluster, ApiServed(broker, session), client)


@pytest.mark.parametrize("mode", ["auto", "off"])
async def test_a_cluster_that_answers_a_tenth_costs_no_client_a_topic(mode: str) -> None:
    async with scene_of(mode) as scene:
        assert await scene.names() == NAMES
        assert (await scene.served.ask("/v1/held-listings")).json == {"items": []}
        scene.cluster.answers = 0.1
        for _ in range(3):
            assert await scene.is_held()
        (held,) = (await scene.served.ask("/v1/held-listings")).json["items"]
        assert (held["namespace"], held["before"], held["now"], held["missing"]) == ("t/n", 200, 20, 180)
        assert "for all" in held["question"]
        scene.cluster.answers = 1.0
        assert await scene.names() == NAMES
        assert (await scene.served.ask("/v1/held-listings")).json == {"items": []}


@pytest.mark.parametrize("mode", ["auto", "off"])
async def test_an_operator_lets_it_pass(mode: str) -> None:
    async with scene_of(mode) as scene:
        assert await scene.names() == NAMES
        del scene.cluster.topics["t/n"][20:]
        assert await scene.is_held()
        with capture_logs() as logs:
            said = await scene.served.ask("/v1/namespaces/t/n/held-listings/accept", "POST")
        assert (said.status, said.json) == (200, {"accepted": 1})
        (line,) = [each for each in logs if each["event"] == "audit"]
        assert (line["action"], line["outcome"], line["namespace"]) == ("accept_shrink", "done", "t/n")
        assert await scene.names() == NAMES[:20]


async def test_a_namespace_that_is_not_guarded() -> None:
    async with scene_of("auto", shrink_guard={"namespaces": [{"name": "t/*", "enabled": False}]}) as scene:
        assert await scene.names() == NAMES
        scene.cluster.answers = 0.1
        assert await scene.names() == NAMES[:20]


async def test_while_it_is_held_nobody_gets_what_was_there_before() -> None:
    """Neither a poll of an old client, for which the snapshot was young enough, nor a new watcher."""
    async with scene_of("auto") as scene:
        assert await scene.names() == NAMES
        scene.cluster.answers = 0.1
        host, port = scene.served.broker.pulsar_address
        async with LookupSession(f"pulsar://{host}:{port}") as new:
            with pytest.raises(ServerRefused, match="The shrink guard holds this listing"):
                await new.get_topics("t/n")  # of after it came
        with pytest.raises(ServerRefused, match="The shrink guard holds this listing"):
            await scene.client.get_topics("t/n")
        watching = await WatchingClient.open((host, port))
        with pytest.raises(Refused) as refused:
            await watching.watch("t/n/.*", namespace="t/n")
        watching.client.close()
        assert refused.value.code is ServerError.MetadataError


async def test_another_file_in_the_place_of_the_catalogue_is_held(tmp_path: Path) -> None:
    """What is deleted in the catalogue itself is not, also while the server is down."""
    tables = {
        "pulsar": {"listen": "127.0.0.1:0"},
        "http": {"listen": "127.0.0.1:0"},
        "catalog": {"path": tmp_path / "topics.sqlite"},
        "shrink_guard": {"file": str(tmp_path / "guard")},
    }
    names = [TopicName.parse(f"persistent://public/default/topic-{index}") for index in range(100)]

    def take_away() -> None:
        for path in tmp_path.glob("topics.sqlite*"):
            if path.is_file():
                path.unlink()

    async def count() -> int:
        async with Broker(Settings.model_validate(tables)) as broker, aiohttp.ClientSession() as session:
            said = await ApiServed(broker, session).ask(f"{NAMESPACE}/topics")
            return len(said.json["items"]) if said.status == 200 else -said.status

    with SqliteCatalog(tmp_path / "topics.sqlite", create=True) as catalog:
        for name in names:
            catalog.create(name)
    assert await count() == 100
    with SqliteCatalog(tmp_path / "topics.sqlite") as catalog:
        for name in names[:60]:
            catalog.delete(name)
    assert await count() == 40
    take_away()
    with SqliteCatalog(tmp_path / "topics.sqlite", create=True) as catalog:
        catalog.create(names[0])
    assert await count() == -502
    take_away()
    assert await count() == -502, "a namespace that never had a topic"
