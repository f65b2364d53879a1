"""A whole gateway with snapshots before a cluster whose faults are chosen: its questions, how often, and the
answers.
"""

from __future__ import annotations

import asyncio
import base64
import random
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import jwt
import pytest

from broker_core.broker import Broker
from broker_core.broker import pulsar_gateway as behind
from broker_core.client import Credentials, LookupSession, ServerRefused
from broker_core.errors import ServerError
from broker_core.names import Mode
from broker_core.settings import Settings
from broker_core.upstream.snapshots import SnapshotLister
from tests.support.fake_cluster import FakeCluster
from tests.support.watching_client import WatchingClient

SECRET = b"0123456789abcdef0123456789abcdef"
NAMES = [f"persistent://t/n/topic-{index:03d}" for index in range(200)]


def token_of(role: str) -> str:
    return jwt.encode({"sub": role}, SECRET, "HS256")


def settings(url: str, **upstream: Any) -> Settings:
    key = base64.b64encode(SECRET).decode()
    return Settings.model_validate(
        {
            "pulsar": {"listen": "127.0.0.1:0"},
            "authentication": {
                "methods": ["token"],
                "token": {"key": f"data:;base64,{key}", "algorithms": ["HS256"]},
            },
            "authorization": {
                "rules": [{"roles": ["*"], "namespaces": ["*/*"], "actions": ["list", "lookup"]}]
            },
            "upstream": {"service_url": url, **upstream},
        }
    )


class Gateway:
    """A gateway and the sessions of its clients, which stay connected."""

    def __init__(self, cluster: FakeCluster, broker: Broker, stack: AsyncExitStack) -> None:
        self.cluster = cluster
        self.broker = broker
        self._stack = stack
        self._sessions: dict[tuple[str, int], LookupSession] = {}

    async def names(
        self, role: str, client: int = 0, mode: Mode = Mode.PERSISTENT, **question: Any
    ) -> list[str]:
        session = self._sessions.get((role, client))
        if session is None:
            host, port = self.broker.pulsar_address
            session = self._sessions[role, client] = LookupSession(
                f"pulsar://{host}:{port}", credentials=Credentials("token", token_of(role).encode)
            )
            await self._stack.enter_async_context(session)
        return sorted((await session.get_topics("t/n", mode, **question)).topics)

    def pass_by(self, seconds: float) -> None:
        """Let everything that the gateway holds be so much older."""
        snapshots = self._upstream.snapshots
        before = snapshots.clock
        snapshots.clock = lambda: before() + seconds

    @property
    def _upstream(self) -> SnapshotLister:
        gateway = self.broker.pipeline.lister
        assert isinstance(gateway, behind.Gateway)
        assert gateway.cluster.snapshots is not None
        return gateway.cluster.snapshots

    def asked(self) -> Counter[str]:
        """How often the cluster was asked, by principal."""
        return Counter(who for who, _ in self.cluster.asked)


@asynccontextmanager
async def gateway(**upstream: Any) -> AsyncIterator[Gateway]:
    upstream["snapshots"] = {"mode": "auto", **upstream.get("snapshots", {})}
    async with FakeCluster() as cluster, AsyncExitStack() as stack:
        cluster.topics["t/n"] = list(NAMES)
        broker = Broker(settings(cluster.url, **upstream))
        await stack.enter_async_context(broker)
        yield Gateway(cluster, broker, stack)


async def test_a_role_of_its_own_lists_for_all_that_the_cluster_lets() -> None:
    async with gateway(
        token="of-the-gateway", snapshots={"token": "of-the-snapshots", "max_age": "60s"}
    ) as scene:
        scene.cluster.denied = {"eve"}
        assert await scene.names("ann") == NAMES
        assert await scene.names("bob") == NAMES
        with pytest.raises(ServerRefused) as refused:
            await scene.names("eve")
        assert refused.value.code is ServerError.AuthorizationError
        before = scene.asked()
        assert before == {"of-the-snapshots": 2, "ann": 1, "bob": 1, "eve": 1}
        for _ in range(20):
            assert await scene.names("ann") == NAMES
            assert await scene.names("bob") == NAMES
        assert scene.asked() == before
        scene.pass_by(61)
        scene.cluster.denied = {"eve", "ann"}
        with pytest.raises(ServerRefused):
            await scene.names("ann")
        assert await scene.names("bob") == NAMES


@pytest.mark.parametrize("upstream", [{"forward": "client"}, {"token": "of-the-gateway"}])
async def test_one_listing_for_each_principal(upstream: dict[str, Any]) -> None:
    async with gateway(**upstream) as scene:
        for client in range(5):
            for role in ("ann", "bob"):
                assert await scene.names(role, client) == NAMES
            scene.pass_by(1)
        before = scene.asked().total()
        assert before <= 10, "the first on each connection"
        for _ in range(10):
            for client in range(5):
                for role in ("ann", "bob"):
                    assert await scene.names(role, client, pattern="persistent://t/n/topic-.*") == NAMES
        assert scene.asked().total() == before
        scene.pass_by(61)
        await asyncio.gather(*(scene.names(role, client) for role in ("ann", "bob") for client in range(5)))
        assert scene.asked().total() == before + 2


async def test_a_cluster_that_is_gone_is_an_error_once_the_snapshot_is_old() -> None:
    async with gateway(token="of-the-gateway") as scene:
        assert await scene.names("ann") == NAMES
        scene.cluster.denied = {"ann"}  # or whatever it says in place of a listing
        assert await scene.names("ann") == NAMES
        scene.pass_by(59)
        assert await scene.names("ann") == NAMES
        scene.pass_by(2)
        with pytest.raises(ServerRefused):
            await scene.names("ann")


async def test_off_asks_for_each_question() -> None:
    async with gateway(token="of-the-gateway", snapshots={"mode": "off"}) as scene:
        for number in range(1, 4):
            assert await scene.names("ann", properties={"a": "b"}) == NAMES
            assert scene.asked() == {"ann": number}
        assert {pair.key for _, question in scene.cluster.asked for pair in question.properties} == {"a"}


async def test_a_cluster_that_lists_by_properties_is_asked_for_them() -> None:
    async with gateway(token="of-the-gateway", listing_depends_on=["properties"]) as scene:
        assert await scene.names("ann") == NAMES
        for _ in range(3):
            assert await scene.names("ann", properties={"a": "b"}) == NAMES
        assert len([question for _, question in scene.cluster.asked if question.properties]) == 3
        assert await scene.names("ann") == NAMES
        assert len(scene.cluster.asked) == 4


async def test_a_cluster_that_lists_by_principal_is_asked_each_time() -> None:
    async with gateway(
        token="of-the-gateway", listing_depends_on=["principal"], snapshots={"token": "of-the-snapshots"}
    ) as scene:
        for _ in range(3):
            assert await scene.names("ann", properties={"a": "b"}) == NAMES
        assert scene.asked() == {"ann": 3}
        assert not any(question.properties for _, question in scene.cluster.asked)


async def test_all_topics() -> None:
    async with gateway(token="of-the-gateway") as scene:
        scene.cluster.topics["t/n"] += ["non-persistent://t/n/other"]
        assert await scene.names("ann", mode=Mode.ALL) == ["non-persistent://t/n/other", *NAMES]
        assert await scene.names("ann", mode=Mode.NON_PERSISTENT) == ["non-persistent://t/n/other"]


@pytest.mark.parametrize("watches", [True, False], ids=["the brokers tell", "compared each max_age"])
async def test_a_watching_client_hears_of_changes_of_the_cluster(watches: bool) -> None:
    pattern = "persistent://t/n/topic-.*"
    async with AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(FakeCluster(topic_watchers=watches, reconcile=watches))
        cluster.topics["t/n"] = list(NAMES)
        tables = {
            "pulsar": {"listen": "127.0.0.1:0"},
            "upstream": {"service_url": cluster.url, "snapshots": {"mode": "auto", "max_age": "1s"}},
        }
        broker = await stack.enter_async_context(Broker(Settings.model_validate(tables)))
        client = await stack.enter_async_context(await WatchingClient.open(broker.pulsar_address))
        assert (await client.watch(pattern, "t/n")).topics == set(NAMES)
        cluster.change("t/n", new=["persistent://t/n/topic-new", "persistent://t/n/other"], deleted=NAMES[:1])
        await client.until({*NAMES[1:], "persistent://t/n/topic-new"})
        await client.close_watcher()


async def test_a_client_that_changes_between_gateways_never_gets_an_older_listing() -> None:
    source = random.Random(28)
    async with AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(FakeCluster())
        cluster.topics["t/n"] = list(NAMES)
        gateways: list[Gateway] = []
        for _ in range(2):
            tables = {
                "pulsar": {"listen": "127.0.0.1:0"},
                "upstream": {"service_url": cluster.url, "snapshots": {"mode": "auto"}},
            }
            broker = await stack.enter_async_context(Broker(Settings.model_validate(tables)))
            gateways.append(Gateway(cluster, broker, stack))
        states = [list(NAMES)]
        had, told, waited = -1, None, 0
        for number in range(60):
            cluster.change("t/n", new=[f"persistent://t/n/new-{number}"], deleted=[states[-1][0]])
            states.append(list(cluster.topics["t/n"]))
            gateway = source.choice(gateways)
            gateway.pass_by(source.choice((0.0, 1.5)))
            before = len(cluster.asked)
            host, port = gateway.broker.pulsar_address
            async with LookupSession(f"pulsar://{host}:{port}") as session:
                # Python sends no hash, Java that of what it has.
                topics_hash = told if source.random() < 0.5 else None
                answer = await session.get_topics("t/n", topics_hash=topics_hash)
            waited += len(cluster.asked) > before
            if answer.changed:
                own = next(row for row, state in enumerate(states) if sorted(state) == sorted(answer.topics))
                assert own >= had
                had, told = own, answer.topics_hash
            else:
                assert answer.topics_hash == told
        assert waited > 20
