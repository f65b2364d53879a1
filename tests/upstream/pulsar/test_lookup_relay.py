"""Relayed lookups: what goes to the brokers, what comes back to the client, and what happens without them."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from broker_core.access.asker import Asker
from broker_core.errors import ServerError
from broker_core.memory.permit_budget import Permit
from broker_core.memory.permits import Permits
from broker_core.settings import LimitsSettings, UpstreamSettings
from broker_core.upstream.pulsar import LookupRelay, UpstreamCluster, UpstreamConnections, UpstreamOptions
from broker_core.upstream.pulsar.lookup_relay import RelayPlaces
from broker_core.wire.pulsar import commands
from broker_core.wire.pulsar.frames import FrameDecoder
from broker_core.wire.pulsar.messages.pulsar_api_pb2 import (
    BaseCommand,
    CommandGetSchemaResponse,
    CommandLookupTopicResponse,
    CommandPartitionedTopicMetadataResponse,
    Schema,
)
from tests.support.clock import AGES
from tests.support.eventually import eventually
from tests.support.scripted_server import Peer, Script, ScriptedServer

# Without their types: a number outside of an enum is what some tests are about.
Partitioned: Any = CommandPartitionedTopicMetadataResponse
Lookup: Any = CommandLookupTopicResponse

TOPIC = "persistent://t/n/x"
CLIENTS_ID = 2**63 + 5
ASKER = Asker(client_version="Pulsar-Java-v4.2.4")


def only(frame: bytes) -> BaseCommand:
    (raw,) = FrameDecoder(1 << 26).feed(frame)
    return commands.decode(raw)


PARTITIONS = only(commands.partitioned_metadata(CLIENTS_ID, TOPIC))
LOOKUP = only(commands.lookup(CLIENTS_ID, TOPIC, authoritative=True, listener_name="outside"))
SCHEMA = only(commands.get_schema(CLIENTS_ID, TOPIC))
PUT_SCHEMA = only(commands.get_or_create_schema(CLIENTS_ID, TOPIC, b"\x0a\x01s"))


def replying(**body: Any) -> Script:
    """A script that answers every request with one command, given as ``field=message``."""
    ((field, message),) = body.items()
    number = BaseCommand.DESCRIPTOR.fields_by_name[field].number

    async def script(peer: Peer, command: BaseCommand) -> None:
        request_id = commands.request_id_of(command)
        assert request_id is not None
        message.request_id = request_id
        answer = BaseCommand(type=number)  # type: ignore[arg-type]  # one of the enum
        getattr(answer, field).CopyFrom(message)
        peer.send(commands.encode(answer))

    return script


def options_for(port: int) -> UpstreamOptions:
    return UpstreamOptions(
        UpstreamSettings(service_url=f"pulsar://127.0.0.1:{port}"), first_backoff=0.005, longest_backoff=0.02
    )


@asynccontextmanager
async def relay_to(script: Script) -> AsyncIterator[tuple[LookupRelay, ScriptedServer]]:
    async with ScriptedServer(script) as server:
        upstream = UpstreamCluster(options_for(server.port))
        await upstream.start()
        try:
            yield upstream.relay, server
        finally:
            await upstream.stop()


def asked(server: ScriptedServer) -> list[BaseCommand]:
    return [each for each in server.received if each.type not in (BaseCommand.CONNECT, BaseCommand.PING)]


async def test_partitions_of_a_topic() -> None:
    found = Partitioned(partitions=4, response=0)
    async with relay_to(replying(partitionMetadataResponse=found)) as (relay, server):
        answer = only(await relay.answer(PARTITIONS, ASKER)).partitionMetadataResponse
        assert (answer.request_id, answer.partitions, answer.response) == (CLIENTS_ID, 4, 0)
        (sent,) = asked(server)
        assert sent.partitionMetadata.topic == TOPIC
        assert sent.partitionMetadata.request_id != CLIENTS_ID
        assert relay.places.taken == 0


@pytest.mark.parametrize("value", [None, True, False])
async def test_field_6_is_passed_on_as_it_is(value: bool | None) -> None:
    question = BaseCommand(type=BaseCommand.PARTITIONED_METADATA)
    question.partitionMetadata.request_id = CLIENTS_ID
    question.partitionMetadata.topic = TOPIC
    if value is not None:
        question.partitionMetadata.metadata_auto_creation_enabled = value
    found = Partitioned(response=0)
    async with relay_to(replying(partitionMetadataResponse=found)) as (relay, server):
        await relay.answer(question, ASKER)
        (sent,) = asked(server)
        assert sent.partitionMetadata.HasField("metadata_auto_creation_enabled") is (value is not None)
        assert sent.partitionMetadata.metadata_auto_creation_enabled is (value is not False)


async def test_a_lookup_names_the_broker_and_never_this_server() -> None:
    found = Lookup(
        response="Connect",
        brokerServiceUrl="pulsar://broker-3:6650",
        brokerServiceUrlTls="pulsar+ssl://broker-3:6651",
        authoritative=True,
        proxy_through_service_url=True,
    )
    async with relay_to(replying(lookupTopicResponse=found)) as (relay, server):
        answer = only(await relay.answer(LOOKUP, ASKER)).lookupTopicResponse
        assert answer.proxy_through_service_url is False
        assert (answer.brokerServiceUrl, answer.brokerServiceUrlTls, answer.authoritative) == (
            "pulsar://broker-3:6650",
            "pulsar+ssl://broker-3:6651",
            True,
        )
        assert answer.request_id == CLIENTS_ID
        (sent,) = asked(server)
        assert (sent.lookupTopic.authoritative, sent.lookupTopic.advertised_listener_name) == (
            True,
            "outside",
        )


async def test_a_large_schema_is_read_and_kept_under_permits() -> None:
    size = 1 << 20
    found = CommandGetSchemaResponse(schema=Schema(name="s", schema_data=bytes(size), type=2))
    permits = Permits()
    granted: list[int] = []
    acquire = permits.heap.acquire

    async def counted(count: int, **more: Any) -> Permit:
        granted.append(count)
        return await acquire(count, **more)

    permits.heap.acquire = counted  # type: ignore[method-assign,assignment]
    kept: list[Permit] = []
    async with ScriptedServer(replying(getSchemaResponse=found)) as server:
        upstream = UpstreamCluster(options_for(server.port), permits=permits)
        await upstream.start()
        try:
            answer = only(await upstream.relay.answer(SCHEMA, ASKER, kept.append)).getSchemaResponse
            assert answer.schema == found.schema
            assert len(granted) == 1
            assert granted[0] > 2 * size
            await eventually(lambda: permits.heap.acquired == sum(permit.count for permit in kept))
            assert kept[0].count >= size
            kept.pop().release()
            await upstream.relay.answer(SCHEMA, ASKER)
            await eventually(lambda: permits.heap.acquired == 0)
        finally:
            await upstream.stop()


async def test_a_large_schema_without_permits_is_an_error() -> None:
    found = CommandGetSchemaResponse(schema=Schema(name="s", schema_data=bytes(1 << 20), type=2))
    permits = Permits(LimitsSettings(heap_permits=1 << 20, permit_timeout=0.01))
    taken = permits.heap.try_acquire(1 << 20)
    assert taken is not None
    async with ScriptedServer(replying(getSchemaResponse=found)) as server:
        upstream = UpstreamCluster(options_for(server.port), permits=permits)
        await upstream.start()
        try:
            answer = only(await upstream.relay.answer(SCHEMA, ASKER)).getSchemaResponse
            assert answer.error_code == ServerError.MetadataError
            assert "no memory" in answer.error_message
            taken.release()
            again = only(await upstream.relay.answer(SCHEMA, ASKER)).getSchemaResponse
            assert again.schema == found.schema
        finally:
            await upstream.stop()


async def test_a_schema_is_passed_on_whole() -> None:
    found = CommandGetSchemaResponse(
        schema=Schema(name="s", schema_data=b"\0\xff", type=2), schema_version=b"\1"
    )
    async with relay_to(replying(getSchemaResponse=found)) as (relay, _):
        answer = only(await relay.answer(SCHEMA, ASKER)).getSchemaResponse
        assert (answer.request_id, answer.schema, answer.schema_version) == (CLIENTS_ID, found.schema, b"\1")


async def test_nobody_gets_to_be_who_they_say() -> None:
    claim = {"original_principal": "admin", "original_auth_data": "x", "original_auth_method": "token"}
    for question, field, reply in (
        (
            PARTITIONS,
            "partitionMetadata",
            {"partitionMetadataResponse": Partitioned()},
        ),
        (LOOKUP, "lookupTopic", {"lookupTopicResponse": Lookup(brokerServiceUrl="b")}),
    ):
        claiming = BaseCommand()
        claiming.CopyFrom(question)
        for name, value in claim.items():
            setattr(getattr(claiming, field), name, value)
        async with relay_to(replying(**reply)) as (relay, server):
            await relay.answer(claiming, ASKER)
            body = getattr(asked(server)[0], field)
            assert not any(body.HasField(name) for name in claim)


@pytest.mark.parametrize(
    "code", [ServerError.AuthorizationError, ServerError.ServiceNotReady, ServerError.TooManyRequests]
)
async def test_errors_of_the_brokers_keep_their_codes(code: ServerError) -> None:
    refused = Partitioned(response=1, error=code, message="no")
    async with relay_to(replying(partitionMetadataResponse=refused)) as (relay, _):
        answer = only(await relay.answer(PARTITIONS, ASKER)).partitionMetadataResponse
        assert (answer.response, answer.error, answer.message) == (1, code, "no")
    failed = Lookup(response=2, error=code, message="no")
    async with relay_to(replying(lookupTopicResponse=failed)) as (relay, _):
        lookup = only(await relay.answer(LOOKUP, ASKER)).lookupTopicResponse
        assert (lookup.response, lookup.error, lookup.message) == (2, code, "no")
    no_schema = CommandGetSchemaResponse(error_code=code, error_message="no")
    async with relay_to(replying(getSchemaResponse=no_schema)) as (relay, _):
        schema = only(await relay.answer(SCHEMA, ASKER)).getSchemaResponse
        assert (schema.error_code, schema.error_message) == (code, "no")


@pytest.mark.parametrize(
    "question", [PARTITIONS, LOOKUP, SCHEMA, PUT_SCHEMA], ids=["partitions", "lookup", "schema", "put"]
)
@pytest.mark.parametrize(
    ("code", "told"),
    [
        (ServerError.NotAllowedError, ServerError.NotAllowedError),
        # In the answers of these commands they would close the connection, as an ERROR they do not.
        (ServerError.ServiceNotReady, ServerError.MetadataError),
        (ServerError.TooManyRequests, ServerError.MetadataError),
    ],
)
async def test_an_error_command_becomes_the_answer_that_clients_look_for(
    question: BaseCommand, code: ServerError, told: ServerError
) -> None:
    async def script(peer: Peer, command: BaseCommand) -> None:
        request_id = commands.request_id_of(command)
        assert request_id is not None
        peer.send(commands.error(request_id, code, "not here"))

    async with relay_to(script) as (relay, _):
        assert refusal_of(only(await relay.answer(question, ASKER))) == (told, "not here")


@pytest.mark.parametrize(
    ("question", "reply", "reason"),
    [
        (
            PARTITIONS,
            {"partitionMetadataResponse": Partitioned(response=5)},
            "unknown outcome 5",
        ),
        (
            PARTITIONS,
            {"partitionMetadataResponse": Partitioned(partitions=2**32 - 1)},
            "4294967295 partitions",
        ),
        (LOOKUP, {"lookupTopicResponse": Lookup(response=5)}, "unknown outcome 5"),
        (LOOKUP, {"lookupTopicResponse": Lookup()}, "without the address of a broker"),
        (LOOKUP, {"partitionMetadataResponse": Partitioned()}, "in place of"),
        (SCHEMA, {"lookupTopicResponse": Lookup()}, "in place of"),
    ],
)
async def test_an_answer_that_is_none_is_not_passed_on(
    question: BaseCommand, reply: dict[str, Any], reason: str
) -> None:
    async with relay_to(replying(**reply)) as (relay, _):
        answer = only(await relay.answer(question, ASKER))
        code, message = refusal_of(answer)
        assert code == ServerError.MetadataError
        assert reason in message


def refusal_of(answer: BaseCommand) -> tuple[int, str]:
    if answer.type == BaseCommand.PARTITIONED_METADATA_RESPONSE:
        partitions = answer.partitionMetadataResponse
        assert (partitions.request_id, partitions.response) == (CLIENTS_ID, 1)
        return partitions.error, partitions.message
    if answer.type == BaseCommand.LOOKUP_RESPONSE:
        lookup = answer.lookupTopicResponse
        assert (lookup.request_id, lookup.response) == (CLIENTS_ID, 2)
        return lookup.error, lookup.message
    is_put = answer.type == BaseCommand.GET_OR_CREATE_SCHEMA_RESPONSE
    schema: Any = answer.getOrCreateSchemaResponse if is_put else answer.getSchemaResponse
    assert schema.request_id == CLIENTS_ID
    return schema.error_code, schema.error_message


async def test_a_code_that_clients_do_not_know_is_not_passed_on() -> None:
    for question, reply in (
        (
            PARTITIONS,
            {"partitionMetadataResponse": Partitioned(response=1, error=99)},
        ),
        (LOOKUP, {"lookupTopicResponse": Lookup(response=2, error=99)}),
        (SCHEMA, {"getSchemaResponse": CommandGetSchemaResponse(error_code=99)}),
    ):
        async with relay_to(replying(**reply)) as (relay, _):
            code, message = refusal_of(only(await relay.answer(question, ASKER)))
            assert (code, message) == (ServerError.UnknownError, "(unknown error code 99)")


async def test_silent_brokers_are_a_metadata_error_in_bounded_time() -> None:
    async with ScriptedServer() as server:
        upstream = UpstreamCluster(replace(options_for(server.port), lookup_timeout=0.5))
        code, message = refusal_of(only(await upstream.relay.answer(LOOKUP, ASKER)))
        assert code == ServerError.MetadataError
        assert "0.5 s" in message
        await upstream.stop()


async def test_no_more_at_a_time_than_the_limit() -> None:
    async with ScriptedServer() as server:
        upstream = UpstreamCluster(replace(options_for(server.port), lookups=4))
        relay = upstream.relay
        waiting = [asyncio.create_task(relay.answer(lookup_of(str(n)), ASKER)) for n in range(2)]
        await eventually(lambda: len(asked(server)) == 2)
        code, message = refusal_of(only(await relay.answer(lookup_of("2"), ASKER)))
        assert code == ServerError.MetadataError
        assert "too many lookups" in message
        other = asyncio.create_task(relay.answer(LOOKUP, replace(ASKER, remote_address="127.0.0.2:1")))
        await eventually(lambda: len(asked(server)) == 3)
        assert relay.places.taken == 3
        waiting[0].cancel()
        await eventually(waiting[0].done)
        assert relay.places.taken == 2
        await upstream.stop()
        refusal_of(only(await waiting[1]))
        refusal_of(only(await other))
        assert relay.places.taken == 0


def lookup_of(name: str) -> BaseCommand:
    return only(commands.lookup(CLIENTS_ID, f"persistent://t/n/{name}"))


async def test_a_question_too_large_for_the_brokers_reaches_nobody() -> None:
    async with relay_to(replying(lookupTopicResponse=Lookup())) as (relay, server):
        question = only(commands.lookup(CLIENTS_ID, TOPIC + "x" * 1_100_000))
        code, message = refusal_of(only(await relay.answer(question, ASKER)))
        assert code == ServerError.MetadataError
        assert "is too large" in message
        assert asked(server) == []


async def test_promises_about_lookups_are_those_of_the_brokers() -> None:
    async with relay_to(replying(lookupTopicResponse=Lookup())) as (relay, _):
        flags = relay.feature_flags
        assert not flags.supports_get_partitioned_metadata_without_auto_creation
        assert not flags.supports_topic_watchers


# ---- equal lookups under way


def of(role: str | None, original: str | None = None) -> Asker:
    return Asker(role=role, original_principal=original)


async def test_equal_lookups_are_asked_once_for_each_principal_and_answered_by_their_own_request_ids() -> (
    None
):
    held = asyncio.Event()
    reply = replying(partitionMetadataResponse=Partitioned(partitions=3, response=0))

    async def script(peer: Peer, command: BaseCommand) -> None:
        await held.wait()
        await reply(peer, command)

    principals = [of(None), of("a"), of("b"), of("proxy", "a"), of("proxy", "b"), of("a", "proxy")]
    async with relay_to(script) as (relay, server):
        questions = [only(commands.partitioned_metadata(number, TOPIC)) for number in range(50)]
        tasks = [
            asyncio.create_task(relay.answer(question, asker))
            for question in questions
            for asker in principals
        ]
        await eventually(lambda: len(relay._shared) == len(principals))
        held.set()
        answers = [only(await task).partitionMetadataResponse for task in tasks]
        ids = [number for number in range(50) for _ in principals]
        assert [(answer.request_id, answer.partitions) for answer in answers] == [
            (number, 3) for number in ids
        ]
        assert len(asked(server)) == 2 * len(principals)
        assert relay.places.taken == len(relay._shared) == 0


@pytest.mark.parametrize(
    "other",
    [
        only(commands.lookup(CLIENTS_ID, TOPIC)),
        only(commands.lookup(CLIENTS_ID, TOPIC + "y", authoritative=True, listener_name="outside")),
        only(commands.lookup(CLIENTS_ID, TOPIC, authoritative=True, listener_name="inside")),
        only(
            commands.lookup(
                CLIENTS_ID, TOPIC, authoritative=True, listener_name="outside", properties={"a": "b"}
            )
        ),
        PARTITIONS,
    ],
    ids=["authoritative", "topic", "listener", "properties", "command"],
)
async def test_a_lookup_with_any_other_field_is_another_one(other: BaseCommand) -> None:
    async with ScriptedServer() as server:
        upstream = UpstreamCluster(options_for(server.port))
        tasks = [asyncio.create_task(upstream.relay.answer(each, ASKER)) for each in (LOOKUP, other)]
        await eventually(lambda: len(asked(server)) == 2)
        await upstream.stop()
        await asyncio.gather(*tasks)


async def test_whether_a_topic_may_be_made_is_a_part_of_the_question() -> None:
    async with ScriptedServer() as server:
        upstream = UpstreamCluster(options_for(server.port))
        asking = [
            only(commands.partitioned_metadata(1, TOPIC, auto_create=create)) for create in (True, False)
        ]
        tasks = [asyncio.create_task(upstream.relay.answer(each, ASKER)) for each in asking]
        await eventually(lambda: len(asked(server)) == 2)
        await upstream.stop()
        await asyncio.gather(*tasks)


async def test_a_field_that_is_not_known_here_is_a_part_of_the_question() -> None:
    newer = BaseCommand(type=BaseCommand.LOOKUP)
    newer.lookupTopic.ParseFromString(LOOKUP.lookupTopic.SerializeToString() + b"\xf8\x07\x01")  # field 127
    async with ScriptedServer() as server:
        upstream = UpstreamCluster(options_for(server.port))
        tasks = [asyncio.create_task(upstream.relay.answer(each, ASKER)) for each in (LOOKUP, newer)]
        await eventually(lambda: len(asked(server)) == 2)
        await upstream.stop()
        await asyncio.gather(*tasks)


# ---- what a relay never says


@pytest.mark.parametrize("question", [PARTITIONS, LOOKUP])
@pytest.mark.parametrize("trouble", ["refused", "broken", "garbage", "handshake"])
async def test_no_trouble_is_told_by_a_code_that_closes_connections(
    question: BaseCommand, trouble: str
) -> None:
    async def script(peer: Peer, command: BaseCommand) -> None:
        if command.type == BaseCommand.CONNECT:
            peer.send(commands.error(commands.CONNECTION_REQUEST_ID, ServerError.ServiceNotReady, "not yet"))
        elif trouble == "broken":
            peer.abort()
        elif trouble == "garbage":
            peer.send(b"\0\0\0\x08\0\0\0\x04\xff\xff\xff\xff")
        else:
            request_id = commands.request_id_of(command)
            assert request_id is not None
            peer.send(commands.error(request_id, ServerError.TooManyRequests, "busy"))

    async with ScriptedServer(script, handshake=trouble != "handshake") as server:
        upstream = UpstreamCluster(replace(options_for(server.port), connection_wait=0.1))
        code, _ = refusal_of(only(await upstream.relay.answer(question, ASKER)))
        assert code == ServerError.MetadataError
        assert upstream.relay.places.taken == 0
        await upstream.stop()


@pytest.mark.parametrize("is_of_client", [True, False])
async def test_what_the_brokers_refuse_for_the_client_itself_is_no_matter_of_asking_again(
    is_of_client: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def script(peer: Peer, _command: BaseCommand) -> None:
        failed = ServerError.AuthenticationError
        peer.send(commands.error(commands.CONNECTION_REQUEST_ID, failed, "Failed to authenticate"))

    async with ScriptedServer(script, handshake=False) as server:
        upstream = UpstreamCluster(
            replace(options_for(server.port), connection_wait=AGES, lookup_timeout=AGES)
        )
        monkeypatch.setattr(UpstreamConnections, "is_of_client", lambda _self, _refused: is_of_client)
        code, message = refusal_of(only(await upstream.relay.answer(LOOKUP, ASKER)))
        assert code == (ServerError.AuthorizationError if is_of_client else ServerError.MetadataError)
        assert "Failed to authenticate" in message
        await upstream.stop()


def filled(places: RelayPlaces, address: str) -> int:
    count = 0
    while places.take(address):
        count += 1
    return count


def test_one_address_gets_half_of_all_places() -> None:
    places = RelayPlaces(100)
    assert filled(places, "a") == 50
    assert filled(places, "b") == 25


@pytest.mark.parametrize("busy", [1, 2, 5, 9])
def test_busy_addresses_share_equally_and_leave_a_part(busy: int) -> None:
    places = RelayPlaces(1000)
    addresses = [f"10.0.0.{number}" for number in range(busy)]
    got = dict.fromkeys(addresses, 0)
    while any(taken := [places.take(address) for address in addresses]):
        for address, one in zip(addresses, taken, strict=True):
            got[address] += one
    assert max(got.values()) - min(got.values()) <= 1
    assert abs(min(got.values()) - 1000 // (busy + 1)) <= 1
    assert places.take("10.0.1.1"), "an address that has none gets a place"


def test_what_is_given_back_can_be_taken_again_and_leaves_nothing() -> None:
    places = RelayPlaces(50)
    taken: list[str] = []
    random.seed(7)
    for _ in range(5000):
        address = f"h{random.randrange(20)}"
        if random.random() < 0.6 and places.take(address):
            taken.append(address)
        elif taken:
            places.give_back(taken.pop(random.randrange(len(taken))))
        assert places.taken == len(taken) <= places.limit
    for address in taken:
        places.give_back(address)
    assert places.taken == 0
    assert not places._by_address


def test_a_refused_address_takes_no_memory() -> None:
    places = RelayPlaces(1)
    assert places.take("a")
    for number in range(100):
        assert not places.take(f"h{number}")
    assert len(places._by_address) == 1


def test_without_places_nobody_gets_one() -> None:
    assert not RelayPlaces(0).take("a")
