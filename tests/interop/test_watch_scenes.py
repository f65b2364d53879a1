"""Watchers and pollers of gateways beside a real broker: after each change, through restarts, under churn."""

from __future__ import annotations

import asyncio
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pulsar
import pyarrow.compute as pc
import pytest

from broker_core import hookimpl
from broker_core.broker import Broker
from broker_core.broker.pulsar_gateway import Gateway
from broker_core.client import LookupSession, ServerRefused
from broker_core.listing.listing_hash import topics_hash
from broker_core.settings import Settings
from tests.interop.maven import PeerUnavailable
from tests.interop.pulsar_peer import PulsarBroker
from tests.support.eventually import eventually
from tests.support.narrowed import of_type, present
from tests.support.ports import free_ports
from tests.support.raw_client import Closed
from tests.support.watching_client import WatchedTopics, WatchingClient

pytestmark = pytest.mark.interop

MAX_AGE: Final = 3.0
call = asyncio.to_thread


class Mask:
    """A plugin that hides all names without a text, while it has one."""

    def __init__(self) -> None:
        self.shows = ""
        self.broker: Any = None

    @hookimpl
    def broker_core_startup(self, broker: Any) -> None:
        self.broker = broker

    @hookimpl
    def broker_core_depends_on(self) -> list[str]:
        return []

    @hookimpl
    def broker_core_visible(self, topics: Any) -> Any:
        return pc.match_substring(topics, self.shows)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PulsarBroker]:
    """A broker that offers topic list watchers, and comes back at its address."""
    first, second = free_ports(2)
    try:
        made = PulsarBroker(
            tmp_path_factory.mktemp("pulsar"),
            settings={"enableBrokerTopicListWatcher": "true", "loadBalancerAutoBundleSplitEnabled": "false"},
            ports=(first, second),
        )
    except PeerUnavailable as error:
        pytest.skip(str(error))
    with made:
        yield made


class Scene:
    """A gateway before the broker, and a namespace; it can be ended and started again at its address."""

    def __init__(
        self, broker: PulsarBroker, namespace: str, folder: Path, *, mask: Mask | None = None
    ) -> None:
        self.broker = broker
        self.namespace = namespace
        self.plugins = {} if mask is None else {"mask": mask}
        (port,) = free_ports(1)
        self.settings = Settings.model_validate(
            {
                # A watcher here answers no PING while a broker starts again, which may take minutes.
                "pulsar": {"listen": f"127.0.0.1:{port}", "drain_timeout": "0s", "keep_alive": "1h"},
                "upstream": {
                    "service_url": broker.service_url,
                    "snapshots": {"max_age": f"{MAX_AGE:g}s"},
                },
                "shrink_guard": {"file": str(folder / f"guard-{port}")},
            }
        )
        self.gateway: Broker | None = None

    async def start(self) -> None:
        self.gateway = Broker(self.settings, plugins=self.plugins)
        await self.gateway.start()

    async def stop(self) -> None:
        gateway, self.gateway = self.gateway, None
        if gateway is not None:
            await gateway.stop()

    @property
    def address(self) -> tuple[str, int]:
        listen = self.settings.pulsar.listen
        return listen.host, listen.port

    @property
    def snapshots(self) -> Any:
        lister = of_type(present(self.gateway).pipeline.lister, Gateway)
        return lister.cluster.snapshots

    def name(self, local: str) -> str:
        return f"persistent://{self.namespace}/{local}"

    async def listed(self) -> set[str]:
        """What a client gets that asks first, and so after it came."""
        async with LookupSession("pulsar://{}:{}".format(*self.address)) as client:
            answer = await client.get_topics(self.namespace)
            assert answer.topics_hash == topics_hash(answer.topics)
            return set(answer.topics)

    async def at_the_broker(self) -> set[str]:
        async with LookupSession(self.broker.service_url) as client:
            return set((await client.get_topics(self.namespace)).topics)

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[WatchingClient]:
        client = await WatchingClient.open(self.address)
        try:
            await client.watch(f"{self.namespace}/.*", namespace=self.namespace)
            yield client
        finally:
            client.client.close()

    async def has(self, client: WatchingClient, shown: Callable[[str], bool] = lambda _: True) -> float:
        """Wait until a watcher and a poller have what the broker lists; how many seconds the watcher took."""
        began = asyncio.get_running_loop().time()
        expected = set(filter(shown, await self.at_the_broker()))
        async with asyncio.timeout(60):
            await client.until(expected)
        seconds = asyncio.get_running_loop().time() - began
        assert await self.listed() == expected
        return seconds


@asynccontextmanager
async def scene_of(
    broker: PulsarBroker, name: str, folder: Path, *, mask: Mask | None = None
) -> AsyncIterator[Scene]:
    scene = Scene(broker, f"public/{name}", folder, mask=mask)
    await call(broker.admin.create_namespace, scene.namespace)
    await scene.start()
    try:
        yield scene
    finally:
        await scene.stop()


async def test_each_change_reaches_watchers_and_pollers(
    broker: PulsarBroker, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    mask = Mask()
    async with scene_of(broker, "steps", tmp_path, mask=mask) as scene:
        admin, name = broker.admin, scene.name
        await call(admin.create_topic, name("first"))
        async with scene.watching() as client:
            await scene.has(client)
            await eventually(lambda: scene.snapshots.watches.open == 1)
            took: dict[str, float] = {}
            await call(admin.create_topic, name("plain"))
            took["plain"] = await scene.has(client)
            await call(admin.create_topic, name("parted"), 3)
            took["partitioned"] = await scene.has(client)
            await call(admin.create_topic, name("ünï-😀"))
            took["unicode"] = await scene.has(client)
            await call(admin.delete_topic, name("plain"))
            took["deleted"] = await scene.has(client)
            pool = asyncio.Semaphore(16)

            async def one(number: int) -> None:
                async with pool:
                    await call(admin.create_topic, name(f"many-{number}"))

            await asyncio.gather(*(one(number) for number in range(1000)))
            took["1,000 at once"] = await scene.has(client)
            assert len(client.watched[7].topics) == 1005
            # A mask that hides nearly all is in force at once, and no loss that the guard holds.
            mask.shows = "parted"
            mask.broker.topics_changed(scene.namespace)
            took["hidden"] = await scene.has(client, lambda each: "parted" in each)
            assert len(client.watched[7].topics) == 3
            mask.shows = ""
            mask.broker.topics_changed(scene.namespace)
            took["shown"] = await scene.has(client)
            record_property("seconds until a watcher had it", took)
            print({step: round(seconds, 2) for step, seconds in took.items()})
            assert scene.snapshots.watches.counts["misfits"] <= 2
        # Non-persistent topics are polled.
        async with LookupSession("pulsar://{}:{}".format(*scene.address)) as poller:
            logger = pulsar.FileLogger(pulsar.LoggerLevel.Warn, str(tmp_path / "p.log"))
            producing = pulsar.Client(broker.service_url, logger=logger)
            loaded = f"non-persistent://{scene.namespace}/loaded"
            await call(producing.create_producer, loaded)

            async def is_there() -> bool:
                from broker_core.names import Mode

                return (await poller.get_topics(scene.namespace, Mode.NON_PERSISTENT)).topics == [loaded]

            await eventually(is_there)
            await call(producing.close)


async def test_restarts_and_an_unloaded_namespace(broker: PulsarBroker, tmp_path: Path) -> None:
    async with scene_of(broker, "restarts", tmp_path) as scene:
        admin, name = broker.admin, scene.name
        for number in range(20):
            await call(admin.create_topic, name(f"t-{number}"))
        async with scene.watching() as client:
            await scene.has(client)
            await eventually(lambda: scene.snapshots.watches.open == 1)
            unload = f"{admin.url}/namespaces/{scene.namespace}/unload"
            await call(urllib.request.urlopen, urllib.request.Request(unload, method="PUT"))
            await call(admin.create_topic, name("after-unload"))
            await scene.has(client)
            had = set(client.watched[7].topics)
            # The broker goes: what a watcher has stays, and a listing is the truth or an error.
            await call(broker.stop)

            async def is_an_error() -> bool:
                try:
                    assert await scene.listed() == had
                except ServerRefused:
                    return True
                return False

            await eventually(is_an_error)
            assert client.watched[7].topics == had
            await call(broker.start)
            await eventually(lambda: is_well(scene))
            await call(admin.create_topic, name("after-broker"))
            await scene.has(client)
            had = set(client.watched[7].topics)
            # The gateway goes, and the topics change meanwhile.
            await scene.stop()
            with pytest.raises(Closed):
                await client.next()
        await call(admin.create_topic, name("meanwhile"))
        await call(admin.delete_topic, name("t-0"))
        await scene.start()
        client = await WatchingClient.open(scene.address)
        client.watched[7] = before = WatchedTopics(had)
        await client.watch(f"{scene.namespace}/.*", namespace=scene.namespace, topics_hash=before.hash)
        await scene.has(client)
        client.client.close()


async def is_well(scene: Scene) -> bool:
    try:
        return bool(await scene.listed())
    except ServerRefused:
        return False


async def test_sixty_percent_deleted(broker: PulsarBroker, tmp_path: Path) -> None:
    """One by one before the gateway's eyes they pass; while it is down they are held, until an operator says so."""
    async with scene_of(broker, "shrinking", tmp_path) as scene:
        admin, name = broker.admin, scene.name
        for number in range(50):
            await call(admin.create_topic, name(f"t-{number}"))
        async with scene.watching() as client:
            await scene.has(client)
            await eventually(lambda: scene.snapshots.watches.open == 1)
            for number in range(30):
                await call(admin.delete_topic, name(f"t-{number}"))
            await scene.has(client)
            assert len(client.watched[7].topics) == 20
        await scene.stop()
        for number in range(30, 42):
            await call(admin.delete_topic, name(f"t-{number}"))
        await scene.start()
        with pytest.raises(ServerRefused, match="12 of 20 topics"):
            await scene.listed()
        assert scene.gateway is not None
        (held,) = scene.gateway.pipeline.guard.held()
        scene.gateway.pipeline.guard.accept(held.namespace)
        assert await scene.listed() == await scene.at_the_broker()
        assert len(await scene.listed()) == 8


async def test_two_gateways_under_churn_never_give_what_is_older(
    broker: PulsarBroker, tmp_path: Path
) -> None:
    """Topics come in the order of their numbers and go in it, so that a listing says of which moment it is."""
    async with scene_of(broker, "churn", tmp_path) as one:
        two = Scene(broker, one.namespace, tmp_path)
        await two.start()
        admin, name = broker.admin, one.name
        for number in range(12):
            await call(admin.create_topic, name(f"t-{number}"))
        ended = asyncio.Event()

        async def churn() -> None:
            for number in range(12, 112):
                await call(admin.create_topic, name(f"t-{number}"))
                await call(admin.delete_topic, name(f"t-{number - 12}"))
            ended.set()

        def moment(topics: set[str]) -> tuple[int, int]:
            numbers = sorted(int(topic.rpartition("-")[2]) for topic in topics)
            assert numbers == list(range(numbers[0], numbers[-1] + 1)), "a listing of no moment"
            return numbers[0], numbers[-1]

        async def polls(start: int) -> int:
            """A client whose connection breaks, and that comes to the other gateway; with its hash, or without."""
            last, had, turns = (0, 0), "", start
            while not ended.is_set():
                turns += 1
                scene = (one, two)[turns % 2]
                async with LookupSession("pulsar://{}:{}".format(*scene.address)) as client:
                    for _ in range(2):
                        sent = had if turns % 4 < 2 else None
                        answer = await client.get_topics(one.namespace, topics_hash=sent or None)
                        if not answer.changed:
                            continue
                        now = moment(set(answer.topics))
                        assert now[0] >= last[0]
                        assert now[1] >= last[1], f"{now} is older than {last}"
                        last, had = now, answer.topics_hash or ""
            return turns - start

        async def watches(start: int) -> int:
            """A watcher that reconnects between them, with the hash of what it had."""
            last, turns, kept = (0, 0), start, None
            while not ended.is_set():
                turns += 1
                scene = (one, two)[turns % 2]
                client = await WatchingClient.open(scene.address)
                if kept is not None:
                    client.watched[7] = kept
                kept = await client.watch(
                    f"{one.namespace}/.*",
                    namespace=one.namespace,
                    topics_hash=None if kept is None else kept.hash,
                )
                for _ in range(3):
                    now = moment(kept.topics) if kept.topics else last
                    assert now >= last, f"{now} is older than {last}"
                    last = now
                    try:
                        async with asyncio.timeout(5):
                            await client.next()
                    except TimeoutError:
                        break
                client.client.close()
            return turns - start

        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(churn())
                polling = [group.create_task(polls(start)) for start in range(4)]
                watching = [group.create_task(watches(start)) for start in range(2)]
            assert min(task.result() for task in [*polling, *watching]) >= 2
            expected = await one.at_the_broker()
            assert await one.listed() == await two.listed() == expected
        finally:
            await two.stop()
