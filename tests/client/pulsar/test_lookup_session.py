"""The lookup session: its questions, and how it reads the answers."""

from __future__ import annotations

import asyncio

import pytest

from broker_core.client import (
    BrokerAddress,
    ConnectionLost,
    InvalidServiceUrl,
    LookupSession,
    ServerRefused,
    TopicSchema,
    UnexpectedAnswer,
    default_client_version,
    topics_hash,
)
from broker_core.errors import ServerError
from broker_core.names import Mode
from broker_core.wire.pulsar import CommandWatchTopicUpdate, commands
from broker_core.wire.pulsar.messages.pulsar_api_pb2 import (
    BaseCommand,
    CommandGetSchemaResponse,
    KeyValue,
    Schema,
)
from broker_core.wire.pulsar.messages.pulsar_api_pb2 import CommandLookupTopicResponse as Lookup
from broker_core.wire.pulsar.messages.pulsar_api_pb2 import (
    CommandPartitionedTopicMetadataResponse as Partitioned,
)
from tests.support.eventually import eventually
from tests.support.fake_cluster import FakeCluster
from tests.support.ports import free_port
from tests.support.scripted_server import Peer, Script, ScriptedServer
from tests.support.topics_answers import get_topics_response

TOPIC = "persistent://t/n/x"


def listing(topics: list[str], **fields: object) -> Script:
    async def script(peer: Peer, command: BaseCommand) -> None:
        request_id = command.getTopicsOfNamespace.request_id
        options = {"topics_hash": "01234567", "filtered": False, **fields}
        peer.send(get_topics_response(request_id, topics, **options))  # type: ignore[arg-type]

    return script


def partitioned(response: Partitioned) -> Script:
    async def script(peer: Peer, command: BaseCommand) -> None:
        response.request_id = command.partitionMetadata.request_id
        peer.send(
            commands.encode(
                BaseCommand(
                    type=BaseCommand.PARTITIONED_METADATA_RESPONSE, partitionMetadataResponse=response
                )
            )
        )

    return script


def lookup(response: Lookup) -> Script:
    async def script(peer: Peer, command: BaseCommand) -> None:
        response.request_id = command.lookupTopic.request_id
        peer.send(
            commands.encode(BaseCommand(type=BaseCommand.LOOKUP_RESPONSE, lookupTopicResponse=response))
        )

    return script


def schema(response: CommandGetSchemaResponse) -> Script:
    async def script(peer: Peer, command: BaseCommand) -> None:
        response.request_id = command.getSchema.request_id
        peer.send(
            commands.encode(BaseCommand(type=BaseCommand.GET_SCHEMA_RESPONSE, getSchemaResponse=response))
        )

    return script


async def test_a_listing() -> None:
    topics = ["persistent://t/n/a", "persistent://t/n/ä-partition-0"]
    async with ScriptedServer(listing(topics, filtered=True)) as server, LookupSession(server.url) as client:
        answer = await client.get_topics("t/n", Mode.ALL, "t/n/.*", "76543210", {"a": "b"})
        assert answer.topics == topics
        assert (answer.filtered, answer.topics_hash, answer.changed) == (True, "01234567", True)
        asked = server.received[-1].getTopicsOfNamespace
        assert (asked.namespace, asked.mode, asked.topics_pattern, asked.topics_hash) == (
            "t/n",
            2,
            "t/n/.*",
            "76543210",
        )
        assert [(pair.key, pair.value) for pair in asked.properties] == [("a", "b")]
        assert server.received[0].connect.client_version == default_client_version()


async def test_what_is_not_given_is_not_sent() -> None:
    async with (
        ScriptedServer(listing([])) as server,
        LookupSession(server.url, client_version="Me") as client,
    ):
        assert (await client.get_topics("t/n")).topics == []
        asked = server.received[-1].getTopicsOfNamespace
        assert {field.name for field, _ in asked.ListFields()} == {"request_id", "namespace", "mode"}
        assert server.received[0].connect.client_version == "Me"


async def test_a_large_listing() -> None:
    topics = [f"persistent://t/n/topic-{index:06d}" for index in range(200_000)]
    async with ScriptedServer(listing(topics)) as server, LookupSession(server.url) as client:
        answer = await client.get_topics("t/n")
        assert len(answer) == 200_000
        assert answer.column().to_pylist() == topics
    async with (
        ScriptedServer(listing(topics)) as server,
        LookupSession(server.url, max_frame=1 << 20) as client,
    ):
        with pytest.raises(UnexpectedAnswer, match="over the limit of 1048576 bytes"):
            await client.get_topics("t/n")


@pytest.mark.parametrize(("asked", "sent"), [("01234567", "01234567"), ("01234567", None)])
async def test_unchanged(asked: str, sent: str | None) -> None:
    script = listing([], changed=False, topics_hash=sent)
    async with ScriptedServer(script) as server, LookupSession(server.url) as client:
        assert not (await client.get_topics("t/n", topics_hash=asked)).changed


@pytest.mark.parametrize("asked", [None, "76543210"])
async def test_unchanged_to_a_hash_that_was_not_sent(asked: str | None) -> None:
    async with ScriptedServer(listing([], changed=False)) as server, LookupSession(server.url) as client:
        with pytest.raises(UnexpectedAnswer, match="says unchanged to the topics hash"):
            await client.get_topics("t/n", topics_hash=asked)


async def test_a_refused_listing() -> None:
    async def script(peer: Peer, command: BaseCommand) -> None:
        request_id = command.getTopicsOfNamespace.request_id
        peer.send(commands.error(request_id, ServerError.AuthorizationError, "no"))

    async with ScriptedServer(script) as server, LookupSession(server.url) as client:
        with pytest.raises(ServerRefused) as refused:
            await client.get_topics("t/n")
        assert (refused.value.code, refused.value.message) == (ServerError.AuthorizationError, "no")


async def test_partitions() -> None:
    script = partitioned(Partitioned(partitions=3, response=Partitioned.Success))
    async with ScriptedServer(script) as server, LookupSession(server.url) as client:
        assert await client.partitioned_metadata(TOPIC) == 3
        assert server.received[-1].partitionMetadata.metadata_auto_creation_enabled is True
        assert await client.partitioned_metadata(TOPIC, auto_create=False) == 3
        assert server.received[-1].partitionMetadata.metadata_auto_creation_enabled is False


@pytest.mark.parametrize(
    ("response", "error"),
    [
        (Partitioned(response=Partitioned.Failed, error=11), "TopicNotFound"),
        (Partitioned(error=6, message="later"), "ServiceNotReady: later"),
        (Partitioned(response=Partitioned.Failed, error=50), "unknown error code 50"),
        (Partitioned(response=7), "unknown outcome 7"),  # type: ignore[arg-type]
    ],
)
async def test_partitions_refused(response: Partitioned, error: str) -> None:
    async with ScriptedServer(partitioned(response)) as server, LookupSession(server.url) as client:
        with pytest.raises((ServerRefused, UnexpectedAnswer), match=error):
            await client.partitioned_metadata(TOPIC)


async def test_lookup() -> None:
    response = Lookup(
        response=Lookup.Connect,
        brokerServiceUrl="pulsar://b:6650",
        authoritative=True,
        proxy_through_service_url=True,
    )
    async with ScriptedServer(lookup(response)) as server, LookupSession(server.url) as client:
        found = await client.lookup(TOPIC, authoritative=True, listener_name="x", properties={"k": "v"})
        assert found == BrokerAddress("pulsar://b:6650", None, False, True, True)
        asked = server.received[-1].lookupTopic
        assert (asked.authoritative, asked.advertised_listener_name) == (True, "x")
        assert asked.properties[0] == KeyValue(key="k", value="v")
        response.response = Lookup.Redirect
        assert (await client.lookup(TOPIC)).redirect


@pytest.mark.parametrize(
    ("response", "error"),
    [
        (Lookup(response=Lookup.Failed, error=17, message="bad"), "InvalidTopicName: bad"),
        (Lookup(response=9), "unknown outcome 9"),  # type: ignore[arg-type]
    ],
)
async def test_lookup_refused(response: Lookup, error: str) -> None:
    async with ScriptedServer(lookup(response)) as server, LookupSession(server.url) as client:
        with pytest.raises((ServerRefused, UnexpectedAnswer), match=error):
            await client.lookup(TOPIC)


async def test_schema() -> None:
    held = Schema(name="s", schema_data=b"{}", type=2, properties=[KeyValue(key="k", value="v")])
    script = schema(CommandGetSchemaResponse(schema=held, schema_version=b"\1"))
    async with ScriptedServer(script) as server, LookupSession(server.url) as client:
        assert await client.get_schema(TOPIC, b"\1") == TopicSchema("s", 2, b"{}", {"k": "v"}, b"\1")
        assert server.received[-1].getSchema.schema_version == b"\1"


@pytest.mark.parametrize(
    "response", [CommandGetSchemaResponse(), CommandGetSchemaResponse(error_code=11, error_message="none")]
)
async def test_no_schema(response: CommandGetSchemaResponse) -> None:
    async with ScriptedServer(schema(response)) as server, LookupSession(server.url) as client:
        assert await client.get_schema(TOPIC) is None


async def test_schema_refused() -> None:
    response = CommandGetSchemaResponse(error_code=4, error_message="no")
    async with ScriptedServer(schema(response)) as server, LookupSession(server.url) as client:
        with pytest.raises(ServerRefused, match="AuthorizationError: no"):
            await client.get_schema(TOPIC)


async def test_a_request_of_somebody_else_goes_out_under_our_id() -> None:
    response = Partitioned(partitions=2, response=Partitioned.Success)
    command = BaseCommand(type=BaseCommand.PARTITIONED_METADATA)
    command.partitionMetadata.request_id = 2**63
    command.partitionMetadata.topic = TOPIC
    async with ScriptedServer(partitioned(response)) as server, LookupSession(server.url) as client:
        answer = await client.raw(command)
        assert answer.partitionMetadataResponse.partitions == 2
        sent = server.received[-1].partitionMetadata
        assert sent.request_id == 0
        assert not sent.HasField("metadata_auto_creation_enabled")
        assert client.pending == 0


async def test_several_addresses_are_tried_in_turn() -> None:
    async with ScriptedServer(listing([])) as server:
        url = f"pulsar://127.0.0.1:{free_port()},127.0.0.1:{server.port}"
        async with LookupSession(url) as client:
            assert client.is_open
            assert client.server.server_version == "Scripted1"
        assert not client.is_open
        client = LookupSession(url)
        await client.connect(first=1)
        assert client.is_open
        await client.close()


async def test_without_a_connection() -> None:
    client = LookupSession(f"pulsar://127.0.0.1:{free_port()}")
    assert not client.is_open
    with pytest.raises(ConnectionLost, match="not connected"):
        await client.get_topics("t/n")
    with pytest.raises(ConnectionLost, match="cannot connect"):
        await client.connect()
    await client.close()
    with pytest.raises(InvalidServiceUrl):
        LookupSession("localhost:6650")


class Told:
    """What a watcher hears."""

    known_hash = None

    def __init__(self) -> None:
        self.begins: list[str] = []
        self.updates: list[tuple[list[str], list[str], str]] = []
        self.began = self.begins.append

    def update(self, told: CommandWatchTopicUpdate) -> None:
        self.updates.append((list(told.new_topics), list(told.deleted_topics), told.topics_hash))


async def test_a_server_without_watches_is_not_asked_for_one() -> None:
    for flags in ({}, {"topic_watchers": True}):
        async with FakeCluster(**flags) as cluster, LookupSession(cluster.url) as session:
            assert not await session.watch("t/n", ".*", Told())
            assert not cluster.watchers


async def test_a_watcher() -> None:
    names = ["persistent://t/n/a", "persistent://t/n/b"]
    async with FakeCluster(topic_watchers=True, reconcile=True) as cluster:
        cluster.topics["t/n"] = list(names)
        async with LookupSession(cluster.url) as session:
            watcher = Told()
            watching = asyncio.create_task(session.watch("t/n", ".*", watcher))
            await eventually(lambda: bool(watcher.begins))
            assert watcher.begins == [topics_hash(names)]
            told = watcher.updates
            cluster.change("t/n", new=["persistent://t/n/c"], deleted=names[:1])
            await eventually(lambda: len(told) == 2)
            assert told[1] == (
                ["persistent://t/n/c"],
                [],
                topics_hash([names[1], "persistent://t/n/c"]),
            )
            watching.cancel()
            await eventually(lambda: not cluster.watchers)
            assert session.is_open
            watching = asyncio.create_task(session.watch("t/n", ".*", watcher))
            await eventually(lambda: len(watcher.begins) == 2)
            cluster.server.peers[-1].abort()
            assert await watching
            assert not session.is_open
