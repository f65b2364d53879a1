"""Snapshots of a real broker: what polls of many clients cost it by its own metric, and how soon changes are seen."""

from __future__ import annotations

import asyncio
import re
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pulsar
import pytest

from broker_core.broker import Broker
from broker_core.broker.pulsar_gateway import Gateway
from broker_core.client import LookupSession
from broker_core.listing.listing_hash import topics_hash
from broker_core.names import Mode
from broker_core.settings import Settings
from broker_core.snapshots.stored import stored_snapshots
from broker_core.upstream.snapshots import SnapshotLister, stored_live_snapshots
from tests.interop.maven import PeerUnavailable
from tests.interop.pulsar_peer import PulsarBroker
from tests.support.eventually import eventually
from tests.support.narrowed import of_type, present

pytestmark = pytest.mark.interop

CLIENTS = 100
MAX_AGE = 5.0
COUNT = re.compile(
    r"^pulsar_broker_topic_list_heap_wait_time_ms_count(?:\{[^}]*\})? ([0-9.e+]+)", re.MULTILINE
)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PulsarBroker]:
    """A broker that offers topic list watchers."""
    try:
        made = PulsarBroker(
            tmp_path_factory.mktemp("pulsar"), settings={"enableBrokerTopicListWatcher": "true"}
        )
    except PeerUnavailable as error:
        pytest.skip(str(error))
    with made:
        yield made


def listings_of(broker: PulsarBroker) -> int:
    """How many listings, watches and reconciles the broker has had, by its own metric."""
    url = f"{broker.admin.url.removesuffix('/admin/v2')}/metrics/"
    with urllib.request.urlopen(url) as response:  # of the test's own broker
        return sum(int(float(count)) for count in COUNT.findall(response.read().decode()))


def settings_before(broker: PulsarBroker, **snapshots: str) -> Settings:
    return Settings.model_validate(
        {
            "pulsar": {"listen": "127.0.0.1:0"},
            "upstream": {
                "service_url": broker.service_url,
                "admin_url": broker.admin.url.removesuffix("/admin/v2"),
                "snapshots": {"mode": "auto", "max_age": f"{MAX_AGE:g}s", **snapshots},
            },
        }
    )


@asynccontextmanager
async def gateway_before(broker: PulsarBroker, **snapshots: str) -> AsyncIterator[tuple[str, SnapshotLister]]:
    """The service URL of a gateway, and its snapshots."""
    async with Broker(settings_before(broker, **snapshots)) as gateway:
        behind = of_type(gateway.pipeline.lister, Gateway)
        lister = present(behind.cluster.snapshots)
        host, port = gateway.pulsar_address
        yield f"pulsar://{host}:{port}", lister


async def test_many_polls_cost_one_listing_and_changes_are_seen_at_once(
    broker: PulsarBroker, tmp_path: Path
) -> None:
    namespace = "public/snapshots"
    call = asyncio.to_thread
    await call(broker.admin.create_namespace, namespace)
    for number in range(20):
        await call(broker.admin.create_topic, f"persistent://{namespace}/topic-{number}")
    async with AsyncExitStack() as stack:
        url, lister = await stack.enter_async_context(gateway_before(broker))
        clients = [await stack.enter_async_context(LookupSession(url)) for _ in range(CLIENTS)]
        here = await stack.enter_async_context(LookupSession(broker.service_url))

        async def polled() -> list[set[str]]:
            answers = await asyncio.gather(*(client.get_topics(namespace) for client in clients))
            for answer in answers:
                assert answer.topics_hash == topics_hash(answer.topics)
            return [set(answer.topics) for answer in answers]

        async def agree() -> bool:
            """Whether every client has what the broker lists now, and the broker's hash."""
            now = await here.get_topics(namespace)
            assert now.topics_hash == topics_hash(now.topics)
            return await polled() == [set(now.topics)] * CLIENTS

        await eventually(agree)
        await eventually(lambda: lister.watches.open == 1)
        loop = asyncio.get_running_loop()
        before, start, polls = await call(listings_of, broker), loop.time(), 0
        while loop.time() < start + 3 * MAX_AGE:
            await polled()
            polls += CLIENTS
        seconds = loop.time() - start
        cost = await call(listings_of, broker) - before
        assert polls > 1000
        assert cost <= seconds / MAX_AGE + 1, f"{cost} listings in {seconds:.1f} s for {polls} polls"

        # What comes and goes is seen without a listing of the gateway.
        listings = sum(lister.snapshots.counts.values())
        await call(broker.admin.create_topic, f"persistent://{namespace}/new")
        await call(broker.admin.create_topic, f"persistent://{namespace}/parted", 3)
        await eventually(agree)
        await call(broker.admin.delete_topic, f"persistent://{namespace}/topic-3")
        await eventually(agree)
        client = pulsar.Client(
            broker.service_url, logger=pulsar.FileLogger(pulsar.LoggerLevel.Warn, str(tmp_path / "p.log"))
        )
        await call(client.create_producer, f"persistent://{namespace}/by-a-producer")
        await eventually(agree)
        await call(client.create_producer, f"non-persistent://{namespace}/loaded")
        await call(client.create_producer, f"persistent://{namespace}/ünïcode-😀")
        await eventually(agree)
        assert lister.watches.counts["updates"] >= 6
        assert lister.watches.counts["misfits"] <= 1
        assert sum(lister.snapshots.counts.values()) <= listings + 1 + (loop.time() - start) / MAX_AGE

        async def has_loaded() -> bool:
            found = await clients[0].get_topics(namespace, Mode.NON_PERSISTENT)
            return found.topics == [f"non-persistent://{namespace}/loaded"]

        await eventually(has_loaded)
        await call(client.close)


async def test_a_restarted_gateway_begins_with_what_it_stored(
    broker: PulsarBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (stored_live_snapshots, stored_snapshots):
        monkeypatch.setattr(module, "LEAST_TOPICS", 10)
    namespace, call, kept = "public/stored", asyncio.to_thread, str(tmp_path / "kept")
    await call(broker.admin.create_namespace, namespace)
    await call(broker.admin.create_topic, f"persistent://{namespace}/parted", 50)
    await call(broker.admin.create_topic, f"persistent://{namespace}/goes")

    async def listed() -> tuple[int, dict[str, int]]:
        """How many topics a new gateway lists first, all of the broker's, and what its listings of it came to."""
        async with gateway_before(broker, folder=kept) as (url, lister):
            async with LookupSession(url) as client, LookupSession(broker.service_url) as here:
                given, now = await client.get_topics(namespace), await here.get_topics(namespace)
            assert (sorted(given.topics), given.topics_hash) == (sorted(now.topics), now.topics_hash)
            return len(given.topics), {
                what: count for what, count in lister.snapshots.counts.items() if count
            }

    assert await listed() == (51, {"first": 1})
    assert await listed() == (51, {"unchanged": 1})  # the broker was asked with the hash of what is stored
    await call(broker.admin.delete_topic, f"persistent://{namespace}/goes")
    await call(broker.admin.create_topic, f"persistent://{namespace}/came", 5)
    assert await listed() == (55, {"changed": 1})
    assert await listed() == (55, {"unchanged": 1})
