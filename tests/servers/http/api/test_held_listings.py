"""Held listings over HTTP and by the operator's socket, at a gateway whose cluster answers a tenth of a namespace."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from structlog.testing import capture_logs

from broker_core.broker import Broker
from broker_core.client import LookupSession, ServerRefused
from broker_core.errors import ServerError
from broker_core.gateway import Gateway
from broker_core.settings import Settings
from tests.support.api_serving import ApiServed
from tests.support.fake_cluster import FakeCluster

NAMES = [f"persistent://t/n/topic-{index:03d}" for index in range(200)]


class Scene:
    def __init__(self, cluster: FakeCluster, served: ApiServed, client: LookupSession) -> None:
        self.cluster = cluster
        self.served = served
        self.client = client

    async def names(self) -> list[str]:
        """What a client gets, of a snapshot that is too old where there is one."""
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


async def test_a_server_with_a_catalogue_of_its_own_has_no_guard(served: ApiServed) -> None:
    said = await served.ask("/v1/held-listings")
    assert said.status == 409
    assert (await served.ask("/v1/namespaces/a/b/held-listings/accept", "POST")).status == 409
