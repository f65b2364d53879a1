"""Relayed lookups: what goes to the brokers, what comes back to the client, and what happens without them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from broker_core.access.asker import Asker
from broker_core.errors import ServerError
from broker_core.settings import UpstreamSettings
from broker_core.upstream.pulsar import LookupRelay, UpstreamCluster, UpstreamOptions
from broker_core.wire.pulsar import commands
from broker_core.wire.pulsar.frame_decoder import FrameDecoder
from broker_core.wire.pulsar.messages.pulsar_api_pb2 import (
    BaseCommand,
    CommandGetSchemaResponse,
    CommandLookupTopicResponse,
    CommandPartitionedTopicMetadataResponse,
    Schema,
)
from tests.support.eventually import eventually
from tests.support.ports import free_port
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
        assert relay._pending == 0


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


async def test_redirects_are_passed_on() -> None:
    found = Lookup(
        response="Redirect",
        brokerServiceUrl="pulsar://broker-4:6650",
    )
    async with relay_to(replying(lookupTopicResponse=found)) as (relay, _):
        answer = only(await relay.answer(LOOKUP, ASKER)).lookupTopicResponse
        assert answer.response == Lookup.Redirect
        assert answer.brokerServiceUrl == "pulsar://broker-4:6650"


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


async def test_an_error_command_is_passed_on_as_one() -> None:
    async def script(peer: Peer, command: BaseCommand) -> None:
        request_id = commands.request_id_of(command)
        assert request_id is not None
        peer.send(commands.error(request_id, ServerError.NotAllowedError, "not here"))

    async with relay_to(script) as (relay, _):
        answer = only(await relay.answer(LOOKUP, ASKER)).error
        assert (answer.request_id, answer.error, answer.message) == (CLIENTS_ID, 22, "not here")


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
    schema = answer.getSchemaResponse
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


@pytest.mark.parametrize("question", [PARTITIONS, LOOKUP, SCHEMA])
async def test_without_brokers_it_is_a_metadata_error_in_bounded_time(question: BaseCommand) -> None:
    upstream = UpstreamCluster(replace(options_for(free_port()), connection_wait=0.05))
    await upstream.start()
    assert not (upstream._lookups._own._open and upstream._listings._own._open)
    code, message = refusal_of(only(await upstream.relay.answer(question, ASKER)))
    assert code == ServerError.MetadataError
    assert "Cannot ask the brokers behind this server: no connection to pulsar://127.0.0.1" in message
    await upstream.stop()


async def test_silent_brokers_are_a_metadata_error_in_bounded_time() -> None:
    async with ScriptedServer() as server:
        upstream = UpstreamCluster(replace(options_for(server.port), lookup_timeout=0.5))
        code, message = refusal_of(only(await upstream.relay.answer(LOOKUP, ASKER)))
        assert code == ServerError.MetadataError
        assert "0.5 s" in message
        await upstream.stop()


async def test_no_more_at_a_time_than_the_limit() -> None:
    async with ScriptedServer() as server:
        upstream = UpstreamCluster(replace(options_for(server.port), lookups=2))
        waiting = [asyncio.create_task(upstream.relay.answer(LOOKUP, ASKER)) for _ in range(2)]
        await eventually(lambda: len(asked(server)) == 2)
        code, message = refusal_of(only(await upstream.relay.answer(LOOKUP, ASKER)))
        assert code == ServerError.MetadataError
        assert "too many lookups" in message
        waiting[0].cancel()
        await eventually(waiting[0].done)
        assert upstream.relay._pending == 1
        await upstream.stop()
        refusal_of(only(await waiting[1]))
        assert upstream.relay._pending == 0


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
