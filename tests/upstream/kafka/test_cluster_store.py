"""What is asked of a cluster for its topics, and when; a server of this project plays the cluster."""

from __future__ import annotations

import asyncio
import uuid
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from broker_core.access.asker import Asker
from broker_core.access.connection_credentials import Sessions
from broker_core.client.kafka import AdminClient, NewTopic
from broker_core.errors import Cause, ListingFailed
from broker_core.names import Mode, NamespaceName
from broker_core.upstream.kafka import ClusterOptions, KafkaCluster
from broker_core.upstream.kafka.cluster_store import KafkaTopicStore
from broker_core.upstream.snapshots import TopicUpdate
from broker_core.wire.kafka import METADATA, Fields
from tests.support.kafka_serving import kafka_broker
from tests.support.ports import free_port
from tests.support.scripted_kafka import Asked, ScriptedKafka, metadata_of

NAMESPACE = NamespaceName.parse("acme/kafka")


class _Watcher:
    known_hash = None

    def began(self, topics_hash: str) -> None:
        raise AssertionError

    def update(self, update: TopicUpdate) -> None:
        raise AssertionError


async def admit(_size: int) -> None:
    """There is room."""


def store_of(
    address: tuple[str, int], sessions: Sessions | None = None
) -> tuple[KafkaCluster, KafkaTopicStore]:
    cluster = KafkaCluster(ClusterOptions((address,), request_timeout=60))
    return cluster, KafkaTopicStore(cluster, NAMESPACE, sessions)


async def test_an_answer_that_is_known_is_not_read_again(tmp_path: Path) -> None:
    async with kafka_broker(tmp_path) as broker:
        address = broker.kafka_address
        assert address is not None
        async with AdminClient("{}:{}".format(*address)) as client:
            (await client.create_topics([NewTopic("orders", 2)])).all()
            cluster, store = store_of(address)
            first = await store.list(None, NAMESPACE, Mode.PERSISTENT, None, admit)
            assert first.names is not None
            assert len(first.names) == 2
            topics = store.topics_of(None, first.topics_hash)
            again = await store.list(None, NAMESPACE, Mode.PERSISTENT, first.topics_hash, admit)
            assert (again.names, again.topics_hash) == (None, first.topics_hash)
            assert store.topics_of(None, first.topics_hash) is topics
            assert store.listings == 2
            (await client.create_topics([NewTopic("mail")])).all()
            changed = await store.list(None, NAMESPACE, Mode.PERSISTENT, first.topics_hash, admit)
            assert changed.names is not None
            assert len(changed.names) == 3
            await cluster.stop()


async def test_topics_that_are_left_out_are_logged_if_they_are_others() -> None:
    names = ["a", "orders-partition-3"]

    def metadata(asked: Asked) -> Fields:
        wanted = names if asked.value["topics"] is None else []
        return metadata_of(
            node, topics=[{"name": name, "topic_id": uuid.uuid4(), "partitions": [{}]} for name in wanted]
        )

    async with ScriptedKafka({METADATA: metadata}) as node:
        cluster, store = store_of(("127.0.0.1", node.port))
        told = []
        for more in ([], ["b"], ["__change_events"]):
            names += more
            with capture_logs() as logs:
                await store.list(None, NAMESPACE, Mode.PERSISTENT, None, admit)
            told.append([line["topics"] for line in logs])
        await cluster.stop()
    assert told == [["1 topic: orders-partition-3"], [], ["2 topics: __change_events, orders-partition-3"]]


async def test_a_node_that_is_behind_is_waited_for(tmp_path: Path) -> None:
    async with kafka_broker(tmp_path) as broker:
        address = broker.kafka_address
        assert address is not None
        async with AdminClient("{}:{}".format(*address)) as client:
            cluster, store = store_of(address)
            await store.list(None, NAMESPACE, Mode.PERSISTENT, None, admit)
            # As if another node had made it, and this one did not know yet.
            store.unshown.note({"late": 2, "never": None})
            listing = asyncio.create_task(store.list(None, NAMESPACE, Mode.PERSISTENT, None, admit))
            (await client.create_topics([NewTopic("late", 2)])).all()
            names = (await listing).names
            assert names is not None
            assert len(names) == 2
            await cluster.stop()


async def test_other_namespaces_and_domains_have_no_topics() -> None:
    _, store = store_of(("127.0.0.1", free_port()))
    elsewhere = NamespaceName.parse("acme/other")
    for namespace, mode in ((NAMESPACE, Mode.NON_PERSISTENT), (elsewhere, Mode.PERSISTENT)):
        listed = await store.list(None, namespace, mode, None, admit)
        assert listed.names is not None
        assert len(listed.names) == 0
    assert not await store.watch(None, NAMESPACE, _Watcher())


async def test_a_cluster_that_is_not_there_is_an_error() -> None:
    cluster, store = store_of(("127.0.0.1", free_port()))
    with pytest.raises(ListingFailed, match="Cannot ask the Kafka cluster") as failed:
        await store.list(None, NAMESPACE, Mode.PERSISTENT, None, admit)
    assert failed.value.cause is Cause.UPSTREAM
    assert "127.0.0.1" not in str(failed.value)
    await cluster.stop()


async def test_a_client_without_credentials_is_denied() -> None:
    _, store = store_of(("127.0.0.1", free_port()), Sessions())
    assert not store.lists_for_all
    with pytest.raises(ListingFailed, match="no credentials of this client") as failed:
        store.view_of(Asker("alice"))
    assert failed.value.cause is Cause.DENIED
