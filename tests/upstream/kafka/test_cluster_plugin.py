"""Topics of a Kafka cluster through a gateway; a server of this project plays the cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from broker_core.broker import Broker
from broker_core.client import LookupClient, ServerRefused
from broker_core.client.kafka import (
    AdminClient,
    NewTopic,
    TopicExistsException,
    UnknownTopicOrPartitionException,
)
from broker_core.wire.kafka import METADATA, Fields
from tests.support.kafka_gateway import NAMESPACE, Cluster, Secrets, address_of, gateway, small_cluster
from tests.support.kafka_serving import ask_once


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    async with small_cluster(tmp_path) as cluster:
        yield cluster


async def names_of(broker: Broker) -> list[str]:
    """What Pulsar clients list."""
    async with LookupClient("pulsar://{}:{}".format(*broker.pulsar_address)) as lookups:
        listing = await lookups.get_topics_under_namespace(NAMESPACE)
        return sorted(name.removeprefix(f"persistent://{NAMESPACE}/") for name in listing)


def listings(broker: Broker) -> float:
    assert broker._core is not None
    assert broker._core.kafka is not None
    return broker._core.kafka.plugin.store.listings


async def test_topics_are_listed_by_all_transports(tmp_path: Path, cluster: Cluster) -> None:
    async with gateway(tmp_path, cluster.address, max_age=60) as broker:
        async with AdminClient(address_of(broker)) as client:
            listed = await client.list_topics(topic_ids=True)
            assert listed.topic_ids() == (await cluster.list_topics(topic_ids=True)).topic_ids()
        assert await names_of(broker) == [
            "mail-partition-0",
            "orders-partition-0",
            "orders-partition-1",
            "orders-partition-2",
            "secret.keys-partition-0",
        ]
        async with aiohttp.ClientSession() as http:
            url = "http://{}:{}/v1/namespaces/acme/kafka/topics".format(*broker.http_address or ())
            async with http.get(url, params={"detail": "partitions,topic_id"}) as answer:
                assert answer.status == 200, await answer.text()
                told = await answer.json()
        assert {row["name"].rpartition("/")[2]: row["partitions"] for row in told["items"]} == {
            "mail-partition-0": 1,
            **dict.fromkeys((f"orders-partition-{number}" for number in range(3)), 3),
            "secret.keys-partition-0": 1,
        }
        assert listings(broker) == 1


async def test_metadata_of_all_topics_is_as_the_cluster_has_it(tmp_path: Path, cluster: Cluster) -> None:
    async with gateway(tmp_path, cluster.address) as broker:
        for version in range(14):
            asked: Fields = {"topics": None if version else []}
            through = await ask_once(broker, METADATA, version, asked)
            direct = await ask_once(cluster.broker, METADATA, version, asked)
            assert through["topics"] == direct["topics"], version
            assert [row["node_id"] for row in through["brokers"]] == [7], version
            assert through["controller_id"] == (7 if version else direct["controller_id"])


async def test_a_page_of_metadata(tmp_path: Path, cluster: Cluster) -> None:
    async with gateway(tmp_path, cluster.address) as broker, AdminClient(address_of(broker)) as client:
        pages = [page async for page in client.list_topics_pages(limit=2)]
    assert [page.paged_by for page in pages] == ["server"] * len(pages)
    assert len(pages) >= 3


async def test_a_change_through_the_gateway_is_seen_by_the_next_question(
    tmp_path: Path, cluster: Cluster
) -> None:
    async with (
        gateway(tmp_path, cluster.address, max_age=600) as broker,
        AdminClient(address_of(broker)) as client,
    ):
        await client.list_topics()
        (await client.create_topics([NewTopic("new", 2)])).all()
        assert "new" in (await client.list_topics()).names()
        assert "new-partition-1" in await names_of(broker)
        (await client.create_partitions({"new": 3})).all()
        assert "new-partition-2" in await names_of(broker)
        (await client.delete_topics(["new", "mail"])).all()
        assert (await client.list_topics()).names() == ["orders", "secret.keys"]


async def test_changes_of_others_are_seen_within_max_age(
    tmp_path: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with gateway(tmp_path, cluster.address, max_age=600) as broker:
        assert broker._core is not None
        assert broker._core.kafka is not None
        snapshots = broker._core.kafka.plugin.snapshots
        async with AdminClient(address_of(broker)) as client:
            await client.list_topics()
            (await cluster.create_topics([NewTopic("new")])).all()
            later = snapshots.clock() + 601
            snapshots.clock = lambda: later
            assert "new" in (await client.list_topics()).names()


async def test_what_a_mask_hides_is_not_there_and_cannot_be_made_or_deleted(
    tmp_path: Path, cluster: Cluster
) -> None:
    async with (
        gateway(tmp_path, cluster.address, {"secrets": Secrets()}) as broker,
        AdminClient(address_of(broker)) as client,
    ):
        assert (await client.list_topics()).names() == ["mail", "orders"]
        with pytest.raises(UnknownTopicOrPartitionException):
            (await client.describe_topics(["secret.keys"]))["secret.keys"]
        with pytest.raises(UnknownTopicOrPartitionException):
            (await client.delete_topics(["secret.keys"])).all()
        with pytest.raises(TopicExistsException):
            (await client.create_topics([NewTopic("secret.keys")])).all()
    assert "secret.keys" in (await cluster.list_topics()).names()


async def test_nothing_is_listed_of_a_cluster_that_does_not_answer(tmp_path: Path, cluster: Cluster) -> None:
    async with gateway(tmp_path, cluster.address, ready=True) as broker:
        assert len(await names_of(broker)) == 5
        await cluster.close()
        await cluster.broker.stop()
        assert broker._core is not None
        assert broker._core.kafka is not None
        snapshots = broker._core.kafka.plugin.snapshots
        later = snapshots.clock() + 2
        snapshots.clock = lambda: later
        with pytest.raises(ServerRefused, match="Cannot ask the Kafka cluster behind this server"):
            await names_of(broker)
