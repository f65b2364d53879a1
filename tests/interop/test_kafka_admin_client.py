"""The admin client of this project against a real Kafka broker."""

from __future__ import annotations

import base64
import json
import time
import uuid
from collections.abc import Iterator

import pytest

from broker_core.client import ClientTls
from broker_core.client.kafka import (
    AclBinding,
    AclFilter,
    AdminClient,
    AlterConfigOp,
    BlockingAdminClient,
    ConfigOperation,
    ConfigResource,
    ConfigSource,
    InvalidConfigurationException,
    InvalidPartitionsException,
    InvalidReplicationFactorException,
    InvalidTopicException,
    NewTopic,
    OAuthBearer,
    Operation,
    PatternType,
    Permission,
    Plain,
    ResourceType,
    SaslAuthenticationException,
    Scram,
    TopicAuthorizationException,
    TopicCollection,
    TopicExistsException,
    UnknownTopicIdException,
    UnknownTopicOrPartitionException,
    UnsupportedSaslMechanismException,
)
from tests.interop.kafka_peer import KafkaBroker
from tests.interop.maven import PeerUnavailable
from tests.support.eventually import eventually

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    try:
        broker = KafkaBroker(tmp_path_factory.mktemp("kafka"))
    except PeerUnavailable as error:
        pytest.skip(str(error))
    with broker:
        yield broker


async def listed(client: AdminClient, *names: str) -> None:
    """Wait until these topics are listed: Kafka answers a change before it lists it."""

    async def are_there() -> bool:
        return set(names) <= set((await client.list_topics()).names())

    await eventually(are_there)


def unsigned_token(subject: str) -> str:
    """A token that a broker without keys believes."""

    def part(value: dict[str, object]) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    now = int(time.time())
    return f"{part({'alg': 'none'})}.{part({'sub': subject, 'iat': now, 'exp': now + 3600})}."


async def test_topics(broker: KafkaBroker) -> None:
    async with AdminClient(broker.address) as client:
        made = await client.create_topics(
            [
                NewTopic("orders", 3, 1, {"retention.ms": "3600000"}),
                NewTopic("bills"),
                NewTopic("a b"),
                NewTopic("wide", replication_factor=3),
                NewTopic("odd", configs={"nope": "1"}),
            ]
        )
        assert (made["orders"], made["bills"]) == (None, None)
        assert (made.num_partitions("orders"), made.replication_factor("orders")) == (3, 1)
        assert made.config("orders")["retention.ms"].source is ConfigSource.DYNAMIC_TOPIC_CONFIG
        assert [type(failed) for failed in made.errors.values()] == [
            InvalidTopicException,
            InvalidReplicationFactorException,
            InvalidConfigurationException,
        ]
        with pytest.raises(TopicExistsException):
            (await client.create_topics([NewTopic("orders")])).topic_id("orders")
        await listed(client, "orders", "bills")
        ids = await client.list_topics(topic_ids=True)
        assert ids.topic_id("orders") == made.topic_id("orders")
        found = await client.describe_topics(["orders", "none"], include_authorized_operations=True)
        assert [each.partition for each in found["orders"].partitions] == [0, 1, 2]
        assert found["orders"].authorized_operations is not None
        with pytest.raises(UnknownTopicOrPartitionException):
            found["none"]
        nobody = uuid.uuid4()
        by_id = await client.describe_topics(TopicCollection.of_topic_ids([ids.topic_id("bills"), nobody]))
        assert by_id[ids.topic_id("bills")].name == "bills"
        with pytest.raises(UnknownTopicIdException):
            by_id[nobody]
        more = await client.create_partitions({"orders": 4, "bills": 1})
        assert more["orders"] is None
        with pytest.raises(InvalidPartitionsException):
            more["bills"]
        gone = await client.delete_topics(["orders", "none"])
        assert list(gone.errors) == ["none"]
        (await client.delete_topics(TopicCollection.of_topic_ids([ids.topic_id("bills")]))).all()


async def test_topics_in_pages(broker: KafkaBroker) -> None:
    async with AdminClient(broker.address) as client:
        names = [f"paged-{number}" for number in range(3)]
        (await client.create_topics(NewTopic(name, 9) for name in names)).all()
        await listed(client, *names)

        async def are_whole() -> bool:
            found = await client.describe_topics(reversed(names))
            return {len(topic.partitions) for topic in found.all().values()} == {9}

        await eventually(are_whole)
        (await client.delete_topics(names)).all()


async def test_configs(broker: KafkaBroker) -> None:
    async with AdminClient(broker.address) as client:
        (await client.create_topics([NewTopic("configured")])).all()
        await listed(client, "configured")
        topic, node = ConfigResource.topic("configured"), ConfigResource.broker(1)
        changed = await client.incremental_alter_configs(
            {topic: [AlterConfigOp("cleanup.policy", "compact", ConfigOperation.APPEND)]}
        )
        assert changed.all() == {topic: None}

        async def is_changed() -> bool:
            found = await client.describe_configs([topic, node], include_documentation=True)
            assert found[node]["node.id"].value == "1"
            return found[topic]["cleanup.policy"].value == "delete,compact"

        await eventually(is_changed)
        (await client.delete_topics(["configured"])).all()


async def test_acls_and_who_asks(broker: KafkaBroker) -> None:
    may_describe = AclBinding(
        ResourceType.TOPIC,
        "seen",
        PatternType.PREFIXED,
        "User:alice",
        "*",
        Operation.DESCRIBE,
        Permission.ALLOW,
    )
    ways = (
        Plain("alice", broker.password),
        Scram("alice", broker.password),
        OAuthBearer(unsigned_token("alice")),
    )
    async with AdminClient(broker.address) as client:
        (await client.create_topics([NewTopic("seen-1"), NewTopic("unseen")])).all()
        (await client.create_acls([may_describe])).all()
        await listed(client, "seen-1", "unseen")

        async def is_added() -> bool:
            wanted = AclFilter(name="seen-1", pattern=PatternType.MATCH)
            return [*await client.describe_acls(wanted)] == [may_describe]

        await eventually(is_added)
        for sasl in ways:
            async with AdminClient(broker.sasl_address, sasl=sasl) as alice:
                await listed(alice, "seen-1")
                assert (await alice.list_topics()).names() == ["seen-1"]
                with pytest.raises(TopicAuthorizationException):
                    (await alice.create_topics([NewTopic("new")])).all()
        removed = (await client.delete_acls([AclFilter(principal="User:alice")])).all()
        assert [list(each) for each in removed.values()] == [[may_describe]]
        (await client.delete_topics(["seen-1", "unseen"])).all()


async def test_wrong_credentials(broker: KafkaBroker) -> None:
    for sasl in (
        Plain("alice", "wrong"),
        Scram("alice", "wrong"),
        Scram("nobody", "x"),
        OAuthBearer("a.b.c"),
    ):
        async with AdminClient(broker.sasl_address, sasl=sasl) as client:
            with pytest.raises(SaslAuthenticationException):
                await client.list_topics()
    async with AdminClient(
        broker.sasl_address, sasl=Scram("alice", "x", mechanism="SCRAM-SHA-256")
    ) as client:
        with pytest.raises(UnsupportedSaslMechanismException, match="SCRAM-SHA-512"):
            await client.list_topics()


def test_tls_and_the_cluster(broker: KafkaBroker) -> None:
    with BlockingAdminClient(broker.tls_address, tls=ClientTls(ca=broker.authority.ca)) as client:
        cluster = client.describe_cluster()
        assert [node.id for node in cluster.nodes] == [1]
        assert cluster.controller == cluster.nodes[0]
        assert f"127.0.0.1:{cluster.nodes[0].port}" == broker.tls_address
