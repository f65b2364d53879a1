"""The admin client with the server of this project."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from broker_core.broker import Broker
from broker_core.client.kafka import (
    AclBinding,
    AclFilter,
    AdminClient,
    AlterConfigOp,
    ConfigOperation,
    ConfigResource,
    ConfigSource,
    InvalidConfigurationException,
    InvalidPartitionsException,
    InvalidReplicationFactorException,
    InvalidTopicException,
    NewTopic,
    Operation,
    PatternType,
    Permission,
    ResourceType,
    SecurityDisabledException,
    TopicCollection,
    TopicExistsException,
    UnknownTopicIdException,
    UnknownTopicOrPartitionException,
)
from tests.support.clock import AGES
from tests.support.kafka_serving import kafka_broker


def address_of(broker: Broker) -> str:
    address = broker.kafka_address
    assert address is not None
    host, port = address
    return f"{host}:{port}"


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[AdminClient]:
    async with kafka_broker(tmp_path) as broker, AdminClient(address_of(broker), api_timeout=AGES) as client:
        yield client


async def test_topics_from_create_to_delete(client: AdminClient) -> None:
    made = await client.create_topics(
        [
            NewTopic("orders", 3, 1, {"retention.ms": "3600000"}),
            NewTopic("a b"),
            NewTopic("wide", replication_factor=3),
            NewTopic("odd", configs={"nope": "1"}),
            NewTopic("none", 0),
        ]
    )
    assert [type(failed) for failed in made.errors.values()] == [
        InvalidTopicException,
        InvalidReplicationFactorException,
        InvalidConfigurationException,
        InvalidPartitionsException,
    ]
    assert (made.num_partitions("orders"), made.replication_factor("orders")) == (3, 1)
    assert made.config("orders")["retention.ms"].source is ConfigSource.DYNAMIC_TOPIC_CONFIG
    assert (await client.list_topics()).names() == ["orders"]
    ids = await client.list_topics(topic_ids=True)
    assert ids.topic_id("orders") == made.topic_id("orders")
    with pytest.raises(TopicExistsException):
        (await client.create_topics([NewTopic("orders")])).all()
    (await client.create_partitions({"orders": 5})).all()
    nobody = uuid.uuid4()
    by_name = await client.describe_topics(["orders", "none"], include_authorized_operations=True)
    by_id = await client.describe_topics(TopicCollection.of_topic_ids([made.topic_id("orders"), nobody]))
    assert len(by_name["orders"].partitions) == 5
    assert Operation.DELETE in (by_name["orders"].authorized_operations or ())
    assert len(by_id[made.topic_id("orders")].partitions) == 5
    with pytest.raises(UnknownTopicOrPartitionException):
        by_name["none"]
    with pytest.raises(UnknownTopicIdException):
        by_id[nobody]
    (await client.delete_topics(TopicCollection.of_topic_ids([made.topic_id("orders")]))).all()
    assert list(await client.list_topics()) == []


async def test_a_topic_made_anew_is_not_deleted_by_the_id_of_the_former(client: AdminClient) -> None:
    first = (await client.create_topics([NewTopic("orders")])).topic_id("orders")
    (await client.delete_topics(["orders"])).all()
    (await client.create_topics([NewTopic("orders")])).all()
    with pytest.raises(UnknownTopicIdException):
        (await client.delete_topics(TopicCollection.of_topic_ids([first]))).all()
    assert (await client.list_topics()).names() == ["orders"]


async def test_configs(client: AdminClient) -> None:
    (await client.create_topics([NewTopic("orders")])).all()
    topic = ConfigResource.topic("orders")
    (
        await client.incremental_alter_configs(
            {topic: [AlterConfigOp("cleanup.policy", "compact", ConfigOperation.APPEND)]}
        )
    ).all()
    found = await client.describe_configs([topic], names=["cleanup.policy"], include_documentation=True)
    assert {name: entry.value for name, entry in found[topic].items()} == {"cleanup.policy": "delete,compact"}


async def test_acls(tmp_path: Path) -> None:
    binding = AclBinding(
        ResourceType.TOPIC, "o", PatternType.PREFIXED, "User:*", "*", Operation.DESCRIBE, Permission.ALLOW
    )
    async with (
        kafka_broker(tmp_path, super_users=("User:ANONYMOUS",)) as broker,
        AdminClient(address_of(broker), api_timeout=AGES) as client,
    ):
        (await client.create_acls([binding])).all()
        assert [*await client.describe_acls(AclFilter(name="orders", pattern=PatternType.MATCH))] == [binding]
        removed = (await client.delete_acls([AclFilter(name="o")])).all()
        assert [list(each) for each in removed.values()] == [[binding]]


async def test_without_an_authorizer(client: AdminClient) -> None:
    with pytest.raises(SecurityDisabledException):
        await client.describe_acls()


async def test_many_at_once(client: AdminClient) -> None:
    names = [f"t-{number}" for number in range(20)]
    made = await asyncio.gather(*(client.create_topics([NewTopic(name)]) for name in names))
    assert all(not each.errors for each in made)
    assert (await client.list_topics()).names() == sorted(names)
    cluster = await client.describe_cluster()
    assert cluster.controller == cluster.nodes[0]
