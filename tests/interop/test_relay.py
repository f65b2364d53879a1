"""The lookup commands that the gateway relays, compared with the broker's own answers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from broker_core.errors import ServerError
from broker_core.wire.pulsar.messages import pulsar_api_pb2 as pb
from tests.benchmarks.wire_client import RawClient
from tests.interop.pulsar_peer import PulsarBroker
from tests.support.served import Served

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def namespace(pulsar_broker: PulsarBroker) -> str:
    pulsar_broker.admin.create_namespace("public/relay")
    pulsar_broker.admin.create_topic("persistent://public/relay/plain")
    pulsar_broker.admin.create_topic("persistent://public/relay/parts", 3)
    return "persistent://public/relay"


@pytest.fixture
def through(gateway: Served) -> Iterator[RawClient]:
    client = RawClient(gateway.address)
    yield client
    client.close()


@pytest.fixture
def direct(pulsar_broker: PulsarBroker) -> Iterator[RawClient]:
    client = RawClient(("127.0.0.1", pulsar_broker.binary_port))
    yield client
    client.close()


def _ask(client: RawClient, command: pb.BaseCommand) -> pb.BaseCommand:
    body = command.SerializeToString()
    size = len(body).to_bytes(4, "big")
    answer = client.ask((len(body) + 4).to_bytes(4, "big") + size + body)
    return pb.BaseCommand.FromString(bytes(answer[8:]))


def _lookup(topic: str, request_id: int = 7) -> pb.BaseCommand:
    lookup = pb.CommandLookupTopic(topic=topic, request_id=request_id)
    return pb.BaseCommand(type=pb.BaseCommand.LOOKUP, lookupTopic=lookup)


def _partitions(topic: str, *, create: bool | None, request_id: int = 8) -> pb.BaseCommand:
    asked = pb.CommandPartitionedTopicMetadata(topic=topic, request_id=request_id)
    if create is not None:
        asked.metadata_auto_creation_enabled = create
    return pb.BaseCommand(type=pb.BaseCommand.PARTITIONED_METADATA, partitionMetadata=asked)


def test_lookup_gives_the_brokers_address_and_keeps_the_data_away_from_us(
    direct: RawClient, through: RawClient, namespace: str, pulsar_broker: PulsarBroker
) -> None:
    asked = _lookup(f"{namespace}/plain")
    own = _ask(direct, asked).lookupTopicResponse
    relayed = _ask(through, asked).lookupTopicResponse
    # A standalone broker tells its clients to send their data through the service URL: which now is ours.
    assert own.proxy_through_service_url
    assert not relayed.proxy_through_service_url
    assert relayed.response == pb.CommandLookupTopicResponse.Connect
    assert relayed.brokerServiceUrl == own.brokerServiceUrl == pulsar_broker.service_url
    assert relayed.authoritative == own.authoritative
    assert relayed.request_id == asked.lookupTopic.request_id


def test_the_same_request_id_may_be_used_again(through: RawClient, namespace: str) -> None:
    for _ in range(3):
        answer = _ask(through, _lookup(f"{namespace}/plain", request_id=5)).lookupTopicResponse
        assert answer.request_id == 5


@pytest.mark.parametrize(("local", "count"), [("plain", 0), ("parts", 3)])
def test_partitioned_metadata_counts(through: RawClient, namespace: str, local: str, count: int) -> None:
    answer = _ask(through, _partitions(f"{namespace}/{local}", create=False)).partitionMetadataResponse
    assert answer.response == pb.CommandPartitionedTopicMetadataResponse.Success
    assert answer.partitions == count
    assert answer.request_id == 8


def test_a_look_before_the_leap_creates_no_topic(
    direct: RawClient, through: RawClient, namespace: str, pulsar_broker: PulsarBroker
) -> None:
    before = pulsar_broker.admin.topics("public/relay")
    asked = _partitions(f"{namespace}/nowhere", create=False)
    own = _ask(direct, asked).partitionMetadataResponse
    relayed = _ask(through, asked).partitionMetadataResponse
    assert (relayed.response, relayed.error, relayed.message) == (own.response, own.error, own.message)
    assert relayed.error == ServerError.TopicNotFound
    assert pulsar_broker.admin.topics("public/relay") == before


@pytest.mark.parametrize("create", [True, None])
def test_with_auto_creation_asked_for_or_left_out_the_broker_decides(
    through: RawClient, direct: RawClient, namespace: str, create: bool | None
) -> None:
    # Auto creation makes plain topics here: the answer is "no partitions", not "no such topic".
    for client, name in ((direct, "own"), (through, "relayed")):
        answer = _ask(client, _partitions(f"{namespace}/made-{name}-{create}", create=create))
        assert answer.partitionMetadataResponse.response == pb.CommandPartitionedTopicMetadataResponse.Success
        assert answer.partitionMetadataResponse.partitions == 0


@pytest.mark.parametrize(
    "topic", ["persistent://public/nowhere/x", "persistent://nobody/ns/x", "::not a name::"]
)
def test_failures_of_the_broker_come_with_its_own_code(
    direct: RawClient, through: RawClient, topic: str
) -> None:
    asked = _partitions(topic, create=False)
    own = _ask(direct, asked).partitionMetadataResponse
    relayed = _ask(through, asked).partitionMetadataResponse
    assert own.response == relayed.response == pb.CommandPartitionedTopicMetadataResponse.Failed
    assert relayed.error == own.error


def test_schema_questions_are_relayed(direct: RawClient, through: RawClient, namespace: str) -> None:
    schema = pb.CommandGetSchema(request_id=9, topic=f"{namespace}/plain")
    asked = pb.BaseCommand(type=pb.BaseCommand.GET_SCHEMA, getSchema=schema)
    own, relayed = _ask(direct, asked), _ask(through, asked)
    assert relayed.getSchemaResponse.request_id == 9
    assert relayed.getSchemaResponse.error_code == own.getSchemaResponse.error_code


def test_what_belongs_to_a_broker_is_refused_and_the_connection_lives(
    through: RawClient, namespace: str
) -> None:
    producer = pb.BaseCommand(type=pb.BaseCommand.PRODUCER)
    producer.producer.topic, producer.producer.producer_id = f"{namespace}/plain", 1
    producer.producer.request_id = 11
    refused = _ask(through, producer).error
    assert refused.request_id == 11
    assert refused.error == ServerError.NotAllowedError
    assert _ask(through, _lookup(f"{namespace}/plain")).HasField("lookupTopicResponse")
