"""Random changes of a cluster, seen by clients of two gateways behind one address: never older, never of no moment."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from broker_core.broker import Broker
from broker_core.client import LookupSession
from broker_core.listing.listing_hash import topics_hash
from broker_core.settings import Settings
from tests.support.eventually import eventually
from tests.support.fake_cluster import FakeCluster
from tests.support.raw_client import Closed
from tests.support.tcp_proxy import TcpProxy
from tests.support.watching_client import WatchedTopics, WatchingClient

NAMESPACE = "public/default"
PATTERN = f"{NAMESPACE}/.*"


class Moments:
    """All listings that the cluster had, by their hash: no two are equal."""

    def __init__(self, cluster: FakeCluster, chosen: random.Random) -> None:
        self._cluster = cluster
        self._chosen = chosen
        self._present = list(cluster.topics[NAMESPACE])
        self._known = {topics_hash(self._present): 0}

    def change(self) -> None:
        """Create a topic of a new name, or delete one."""
        if len(self._present) > 30 and self._chosen.random() < 0.5:
            gone = self._present.pop(self._chosen.randrange(20))  # or a former listing would come again
            self._cluster.change(NAMESPACE, deleted=[gone])
        else:
            # So long that some updates fill the buffers of a client that does not read.
            new = f"persistent://{NAMESPACE}/t-{len(self._known)}-{'n' * 200}"
            self._present.append(new)
            self._cluster.change(NAMESPACE, new=[new])
        assert self._known.setdefault(topics_hash(self._present), len(self._known)) == len(self._known) - 1

    def of(self, told: str) -> int:
        """The number of the listing with this hash."""
        assert told in self._known, "a listing that the cluster never had"
        return self._known[told]

    def __len__(self) -> int:
        return len(self._known)


class Client:
    """What a client had last: it must not be given what is older."""

    def __init__(self, moments: Moments, address: tuple[str, int]) -> None:
        self._moments = moments
        self.address = address
        self.had = 0
        self.turns = 0

    def has(self, told: str) -> None:
        """Note that the client has the listing of this hash now."""
        number = self._moments.of(told)
        assert number >= self.had, f"listing {number} after listing {self.had}"
        self.had = number

    @property
    def is_current(self) -> bool:
        return self.had == len(self._moments) - 1


async def polls(client: Client, *, sends_hash: bool, chosen: random.Random) -> None:
    """A client that connects anew after some questions, with its hash (Java) or without (C++, Go, Python)."""
    told: str | None = None
    while True:
        client.turns += 1
        async with LookupSession("pulsar://{}:{}".format(*client.address)) as session:
            for _ in range(chosen.randint(1, 4)):
                answer = await session.get_topics(NAMESPACE, topics_hash=told if sends_hash else None)
                if answer.changed:
                    assert answer.topics_hash == topics_hash(answer.topics)
                    told = answer.topics_hash
                assert told is not None
                client.has(told)


async def watches(client: Client, *, updates: int | None, receive_buffer: int | None, pause: float) -> None:
    """A watcher that connects anew after some updates, or half a second, or if it was closed, with the hash of what it
    had.

    With a small ``receive_buffer`` and a ``pause`` between its reads it overflows.
    """
    kept: WatchedTopics | None = None
    while True:
        client.turns += 1
        watching = await WatchingClient.open(client.address, receive_buffer=receive_buffer)
        if kept is not None:
            watching.watched[7] = kept
        try:
            kept = await watching.watch(PATTERN, NAMESPACE, topics_hash=None if kept is None else kept.hash)
            client.has(kept.hash)
            read = 0
            async with asyncio.timeout(None if updates is None else 0.5):
                while updates is None or read < updates:
                    await watching.next()
                    client.has(kept.hash)
                    read += 1
                    if pause and read % 20 == 0:
                        await asyncio.sleep(pause)  # what it leaves unread is in the buffers
        except (Closed, TimeoutError):
            pass
        finally:
            watching.client.close()


@asynccontextmanager
async def two_gateways(
    tmp_path: Path, cluster: FakeCluster, chosen: random.Random
) -> AsyncIterator[tuple[str, int]]:
    """Their one address, at which each connection comes to either of them."""
    async with AsyncExitStack() as stack:
        gateways = []
        for number in range(2):
            values = {
                "pulsar": {"listen": "127.0.0.1:0"},
                "upstream": {"service_url": cluster.url, "snapshots": {"max_age": "2s"}},
                "shrink_guard": {"file": str(tmp_path / f"guard-{number}.txt")},
            }
            gateways.append(await stack.enter_async_context(Broker(Settings.model_validate(values))))
        proxy = await stack.enter_async_context(TcpProxy(lambda: chosen.choice(gateways).pulsar_address))
        yield proxy.address


@pytest.mark.parametrize("changes", [400, pytest.param(5000, marks=pytest.mark.long)])
async def test_nobody_gets_what_is_older_or_of_no_moment(tmp_path: Path, changes: int) -> None:
    chosen = random.Random(changes)
    async with FakeCluster(topic_watchers=True, reconcile=True) as cluster:
        cluster.topics[NAMESPACE] = [f"persistent://{NAMESPACE}/first-{number}" for number in range(40)]
        moments = Moments(cluster, chosen)
        async with two_gateways(tmp_path, cluster, chosen) as address:
            clients = [Client(moments, address) for _ in range(10)]
            tasks: list[asyncio.Task[None]] = [
                asyncio.create_task(polls(client, sends_hash=row % 2 == 0, chosen=chosen))
                for row, client in enumerate(clients[:4])
            ]
            kinds: list[tuple[int | None, int | None, float]] = [
                (None, None, 0.0),
                (5, None, 0.0),
                (40, None, 0.0),
                (None, 4096, 0.05),
                (None, 4096, 0.5),
                (30, 4096, 0.2),
            ]
            tasks += [
                asyncio.create_task(watches(client, updates=most, receive_buffer=buffer, pause=pause))
                for client, (most, buffer, pause) in zip(clients[4:], kinds, strict=True)
            ]
            returning = [*clients[:4], clients[5], clients[6]]

            def keep_up() -> bool:
                turns = len(moments) // 100
                return clients[4].is_current and all(client.turns > turns for client in returning)

            try:
                await _while_well(tasks, lambda: all(client.turns for client in clients))
                for number in range(1, changes + 1):
                    # Brokers lose updates, and tell some twice; sessions break.
                    cluster.fault = lambda frame: [frame] * chosen.choice((0, *(1,) * 48, 2))
                    moments.change()
                    if number % 150 == 0:
                        cluster.lose_watchers()
                    if number % 5 == 0:
                        await asyncio.sleep(0.01)
                    if number % 100 == 0:
                        await _while_well(tasks, keep_up)
                cluster.fault = lambda frame: [frame]
                moments.change()
                await _while_well(tasks, lambda: all(client.is_current for client in clients))
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)


async def _while_well(tasks: list[asyncio.Task[None]], condition: Callable[[], bool]) -> None:
    """Wait for a state while no client fails."""

    def is_so() -> bool:
        for task in tasks:
            if task.done():
                task.result()
        return condition()

    await eventually(is_so)
