"""Commands that a connection refuses while it stays open."""

from __future__ import annotations

from typing import Any

import pytest

from broker_core.errors import ServerError
from broker_core.pipeline import PipelineOptions
from broker_core.servers.pulsar import PulsarOptions
from broker_core.settings import LimitsSettings, PatternsSettings
from broker_core.wire.pulsar import commands
from broker_core.wire.pulsar.messages.pulsar_api_pb2 import BaseCommand
from tests.support.connection_questions import (
    NAMESPACE,
    lister,
    of_broker,
    refused,
)
from tests.support.memory_lister import MemoryLister
from tests.support.pulsar_serving import serving
from tests.support.raw_client import Refused


@pytest.mark.parametrize(
    ("question", "code", "message"),
    [
        ({"namespace": "public"}, ServerError.InvalidTopicName, "public"),
        ({"mode": 3}, ServerError.NotAllowedError, "mode"),
        ({"topics_pattern": "("}, ServerError.MetadataError, "Invalid topics pattern"),
        ({"topics_pattern": "http://a/b/c"}, ServerError.MetadataError, "Invalid topics pattern"),
        ({"topics_pattern": "(?!test).*"}, ServerError.MetadataError, "Unsupported topics pattern"),
        ({"properties": {"key": "v" * 98}}, ServerError.NotAllowedError, "properties"),
        ({"properties": {"": "x" * 1_000_000}}, ServerError.NotAllowedError, "properties"),
    ],
)
async def test_a_question_that_is_refused_keeps_the_connection(
    question: dict[str, Any], code: ServerError, message: str
) -> None:
    """Which are refused is tested in tests/pipeline/test_question.py."""
    strict = PipelineOptions(PatternsSettings(unsupported="error"))
    options = PulsarOptions(limits=LimitsSettings(properties=8, property_bytes=100))
    async with serving(lister(), options=options, pipeline_options=strict) as s, await s.client() as client:
        error = await refused(client, commands.get_topics(5, **{"namespace": NAMESPACE, **question}))
        assert (error.request_id, error.error) == (5, code)
        assert message in error.message


#: With an answer of their own, which refuses them.
OWN_FORM = {
    "ack": "ackResponse",
    "consumerStats": "consumerStatsResponse",
    "newTxn": "newTxnResponse",
    "addPartitionToTxn": "addPartitionToTxnResponse",
    "addSubscriptionToTxn": "addSubscriptionToTxnResponse",
    "endTxn": "endTxnResponse",
    "endTxnOnPartition": "endTxnOnPartitionResponse",
    "endTxnOnSubscription": "endTxnOnSubscriptionResponse",
    "tcClientConnectRequest": "tcClientConnectResponse",
    "scalableTopicSubscribe": "scalableTopicSubscribeResponse",
}
LOOKUPS = ("partitionMetadata", "lookupTopic", "getSchema", "getOrCreateSchema")
REQUESTS = {
    field.name
    for field in BaseCommand.DESCRIPTOR.fields
    if field.message_type is not None and "request_id" in field.message_type.fields_by_name
}
BROKER_COMMANDS = sorted(REQUESTS - {"getTopicsOfNamespace", "watchTopicListClose", *LOOKUPS, *OWN_FORM})


@pytest.mark.parametrize("name", BROKER_COMMANDS)
async def test_what_belongs_to_a_broker_is_refused_by_its_request_id(name: str) -> None:
    async with serving(lister()) as s, await s.client() as client:
        error = await refused(client, commands.encode(of_broker(name, 3)))
        assert (error.request_id, error.error) == (3, ServerError.NotAllowedError)
        if name in ("producer", "subscribe", "seek"):
            assert error.message.startswith(f"{name.upper()} belongs to a broker")


@pytest.mark.parametrize(("name", "answer"), OWN_FORM.items())
async def test_what_has_an_answer_of_its_own_is_refused_by_it(name: str, answer: str) -> None:
    async with serving(lister()) as s, await s.client() as client:
        await client.send(commands.encode(of_broker(name, 3)))
        body = getattr(await client.receive(), answer)
        assert body.request_id == 3
        assert ServerError.NotAllowedError in [value for _, value in body.ListFields()]
        await client.ping()


@pytest.mark.parametrize(
    ("name", "answer", "key"),
    [
        ("scalableTopicLookup", "scalableTopicUpdate", "session_id"),
        ("watchScalableTopics", "watchScalableTopicsUpdate", "watch_id"),
        ("watchTcAssignments", "watchTcAssignmentsUpdate", "watch_id"),
    ],
)
async def test_sessions_and_watches_are_refused_by_their_id(name: str, answer: str, key: str) -> None:
    async with serving(lister()) as s, await s.client() as client:
        number = BaseCommand.DESCRIPTOR.fields_by_name[name].number
        command = BaseCommand(type=BaseCommand.Type.ValueType(number))
        setattr(getattr(command, name), key, 5)
        await client.send(commands.encode(command))
        body = getattr(await client.receive(), answer)
        assert (getattr(body, key), body.error) == (5, ServerError.NotAllowedError)
        assert "belongs to a broker" in body.message
        await client.ping()


async def test_what_has_no_request_id_is_dropped() -> None:
    async with serving(lister()) as s, await s.client() as client:
        for kind in (BaseCommand.SEND, BaseCommand.FLOW, BaseCommand.ACK, BaseCommand.AUTH_CHALLENGE):
            command = BaseCommand(type=kind)
            name = BaseCommand.DESCRIPTOR.fields_by_number[int(kind)].name
            body = getattr(command, name)
            body.SetInParent()
            for field in body.DESCRIPTOR.fields:
                if field.is_required:
                    setattr(body, field.name, 1)
            await client.send(commands.encode(command))
        await client.ping()


async def test_a_frame_with_a_payload_does_not_disturb() -> None:
    async with serving(lister()) as s, await s.client() as client:
        send = commands.encode(BaseCommand(type=BaseCommand.NO_COMMAND))[8:]
        payload = b"\x0e\x01" + b"p" * 100_000
        total = 4 + len(send) + len(payload)
        await client.send(total.to_bytes(4, "big") + len(send).to_bytes(4, "big") + send + payload)
        await client.ping()


@pytest.mark.parametrize("at_once", [True, False])
async def test_an_error_that_nobody_foresaw_is_an_error_and_no_end(at_once: bool) -> None:
    class Broken(MemoryLister):
        def _result(self, request: Any) -> Any:
            raise KeyError("a bug, with secrets")

    source = Broken(at_once=at_once)
    async with serving(source, internal_errors=True) as s, await s.client() as client:
        with pytest.raises(Refused, match=r"^MetadataError: Internal error: KeyError$"):
            await client.ask(NAMESPACE)
        await client.ping()
        assert [event["event"] for event in s.logs] == ["listing failed"]
