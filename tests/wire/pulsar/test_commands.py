"""Commands of real clients and a broker decode as recorded, and hostile ones are refused."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st

from broker_core.errors import ServerError
from broker_core.wire.pulsar import commands
from broker_core.wire.pulsar.frames import FrameDecoder, FrameError, frame
from broker_core.wire.pulsar.messages.pulsar_api_pb2 import (
    BaseCommand,
    CommandConnect,
    CommandLookupTopicResponse,
    FeatureFlags,
)
from tests.support.one_test import in_one_test
from tests.support.vectors import frames

RECORDED = [line for client in ("java", "go", "python") for line in frames(client) if "hex" in line]

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
request_ids = st.integers(0, 2**64 - 1)
codes = st.sampled_from(ServerError)


def only(whole_frame: bytes) -> BaseCommand:
    (command,) = FrameDecoder(1 << 30).feed(whole_frame)
    return commands.decode(command)


def body_of(command: BaseCommand) -> Message:
    body: Message = getattr(command, commands._BODIES[command.type])
    return body


def recorded_value(body: Message, name: str) -> Any:
    """A field as the recording shows it."""
    value = getattr(body, name)
    if name == "feature_flags":
        return [field.name.removeprefix("supports_") for field, on in value.ListFields() if on]
    if name in ("properties", "metadata"):
        return [{"key": pair.key, "value": pair.value} for pair in value]
    if name == "auth_data":
        return f"<{len(value)} bytes>"
    return (
        list(value)
        if name in ("topics", "topic", "new_topics", "deleted_topics") and not isinstance(value, str)
        else value
    )


@in_one_test("line", RECORDED)
def test_recorded_frames(line: dict[str, Any]) -> None:
    raw = bytes.fromhex(line["hex"])
    command = commands.decode(raw)
    assert command.type == line["type"]
    assert commands.command_name(command.type) == line["name"]
    again = only(commands.encode(command))
    assert again == command
    if "fields" not in line:
        return
    for decoded in (command, again):
        body = body_of(decoded)
        for name, expected in line["fields"].items():
            if name == "unknown_fields":
                continue  # those of a broker's command, which are kept and not looked at
            if name.endswith("_count"):
                assert len(getattr(body, name.removesuffix("_count"))) == expected
            elif isinstance(expected, list) and name in ("topics", "topic", "new_topics", "deleted_topics"):
                assert recorded_value(body, name)[: len(expected)] == expected
            else:
                assert recorded_value(body, name) == expected, name
        set_fields = {field.name for field, _ in body.ListFields()}
        assert set_fields <= set(line["fields"]) | {"topic"}


def test_absent_fields_have_the_defaults_of_the_protocol() -> None:
    probe = only(commands.encode(_partitioned_without_field_6()))
    assert probe.partitionMetadata.metadata_auto_creation_enabled is True
    response = BaseCommand(type=BaseCommand.GET_TOPICS_OF_NAMESPACE_RESPONSE)
    response.getTopicsOfNamespaceResponse.request_id = 1
    decoded = only(commands.encode(response)).getTopicsOfNamespaceResponse
    assert (decoded.changed, decoded.filtered) == (True, False)


def _partitioned_without_field_6() -> BaseCommand:
    command = BaseCommand(type=BaseCommand.PARTITIONED_METADATA)
    command.partitionMetadata.request_id = 7
    command.partitionMetadata.topic = "persistent://t/n/x"
    return command


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "lacks type"),
        (b"\xff", "unparsable command of 1 bytes"),
        (b"\x08\x20", "incomplete GET_TOPICS_OF_NAMESPACE command: it lacks its body"),
        (b"\x08\x20\x82\x02\x00", "lacks getTopicsOfNamespace.request_id, getTopicsOfNamespace.namespace"),
        (b"\x08\x20\x82\x02\x05\x08\x01\x12\x01\xff", "unparsable"),  # no UTF-8
        (b"\x08\x20\x82\x02\x05\x08\x01\x12\x02a", "unparsable"),  # truncated
    ],
)
def test_what_is_no_command(raw: bytes, reason: str) -> None:
    with pytest.raises(FrameError, match=reason):
        commands.decode(raw)


def test_numbers_outside_of_an_enum_are_seen() -> None:
    assert commands.decode(b"\x08\x63").type == 99
    assert commands.command_name(99) == "type 99"
    mode_9 = commands.decode(b"\x08\x20\x82\x02\x07\x08\x01\x12\x01a\x18\x09")
    assert mode_9.getTopicsOfNamespace.mode == 9


@given(st.binary(max_size=200))
def test_random_bytes_raise_nothing_but_frame_errors(raw: bytes) -> None:
    try:
        command = commands.decode(raw)
    except FrameError:
        return
    commands.request_id_of(command)


@given(st.sampled_from(RECORDED), st.data())
def test_damaged_commands_raise_nothing_but_frame_errors(line: dict[str, Any], data: st.DataObject) -> None:
    raw = bytearray.fromhex(line["hex"])
    for position in data.draw(st.lists(st.integers(0, len(raw) - 1), min_size=1, max_size=4)):
        raw[position] = data.draw(st.integers(0, 255))
    del raw[data.draw(st.integers(1, len(raw))) :]
    try:
        commands.request_id_of(commands.decode(bytes(raw)))
    except FrameError:
        pass


@given(
    request_ids,
    texts,
    st.integers(0, 2),
    st.tuples(st.none() | texts, st.none() | texts),
    st.dictionaries(texts, texts, max_size=4),
)
def test_get_topics_round_trip(
    request_id: int,
    namespace: str,
    mode: int,
    optional: tuple[str | None, str | None],
    properties: dict[str, str],
) -> None:
    pattern, known = optional
    body = only(
        commands.get_topics(
            request_id, namespace, mode, topics_pattern=pattern, topics_hash=known, properties=properties
        )
    ).getTopicsOfNamespace
    assert (body.request_id, body.namespace, body.mode) == (request_id, namespace, mode)
    assert (body.topics_pattern if body.HasField("topics_pattern") else None) == pattern
    assert (body.topics_hash if body.HasField("topics_hash") else None) == known
    assert {pair.key: pair.value for pair in body.properties} == properties


@given(request_ids, codes, st.text(max_size=60))
def test_errors_can_say_anything(request_id: int, code: ServerError, message: str) -> None:
    lookup, metadata = (
        only(commands.lookup(request_id, "t")),
        only(commands.partitioned_metadata(request_id, "t")),
    )
    for whole, name in (
        (commands.error(request_id, code, message), "error"),
        (commands.refuse(lookup, code, message), "lookupTopicResponse"),
        (commands.refuse(metadata, code, message), "partitionMetadataResponse"),
    ):
        body = getattr(only(whole), name)
        assert (body.request_id, body.error) == (request_id, code)
        assert body.message == message.encode("utf-8", "backslashreplace").decode()


def test_the_text_of_an_error_is_bounded() -> None:
    assert len(only(commands.error(1, ServerError.MetadataError, "x" * 100_000)).error.message) == 4096


def test_a_failed_lookup_says_failed() -> None:
    lookup, metadata = only(commands.lookup(3, "t")), only(commands.partitioned_metadata(3, "t"))
    failed = only(commands.refuse(lookup, ServerError.MetadataError, "no")).lookupTopicResponse
    assert failed.response == CommandLookupTopicResponse.Failed
    refused = only(commands.refuse(metadata, ServerError.MetadataError, "no"))
    assert refused.partitionMetadataResponse.response == 1
    found = only(commands.partitioned_metadata_response(3, 5)).partitionMetadataResponse
    assert (found.response, found.partitions) == (0, 5)


def test_handshake() -> None:
    sent = only(commands.connect("Test-1", auth_method_name="token", auth_data=b"jwt")).connect
    assert (sent.client_version, sent.protocol_version) == ("Test-1", 21)
    assert (sent.auth_method_name, sent.auth_data) == ("token", b"jwt")
    flags = FeatureFlags(supports_get_partitioned_metadata_without_auto_creation=True)
    answer = only(
        commands.connected("Server1", protocol_version=19, max_message_size=5_242_880, feature_flags=flags)
    ).connected
    assert (answer.server_version, answer.protocol_version, answer.max_message_size) == (
        "Server1",
        19,
        5_242_880,
    )
    assert answer.feature_flags == flags
    without = only(commands.connected("Server1", protocol_version=19, max_message_size=None)).connected
    assert not without.HasField("max_message_size")
    response = only(commands.auth_response("Test-1", "token", b"new")).authResponse
    assert (response.response.auth_method_name, response.response.auth_data) == ("token", b"new")


def test_a_challenge() -> None:
    frame = commands.auth_challenge("broker-core 1", "token", commands.REFRESH, protocol_version=19)
    challenge = commands.decode(frame[8:]).authChallenge
    assert (challenge.server_version, challenge.protocol_version) == ("broker-core 1", 19)
    assert challenge.challenge.auth_method_name == "token"
    assert challenge.challenge.auth_data == b"PulsarAuthRefresh"


@pytest.mark.parametrize(
    ("fields", "method"),
    [
        ({}, None),
        ({"auth_method_name": ""}, ""),
        ({"auth_method_name": "Token", "auth_method": 1}, "Token"),
        ({"auth_method": 0}, "none"),
        ({"auth_method": 1}, "ycav1"),
        ({"auth_method": 2}, "athens"),
        ({"auth_method": 3}, "unknown"),
    ],
)
def test_the_method_of_a_client(fields: dict[str, Any], method: str | None) -> None:
    assert commands.auth_method_of(CommandConnect(client_version="v", **fields)) == method


def test_keep_alive() -> None:
    assert only(commands.ping()).type == BaseCommand.PING
    assert only(commands.pong()).type == BaseCommand.PONG
    assert commands.decode(b"\x08\x12").type == BaseCommand.PING, "a body that is empty may be missing"


def test_lookups() -> None:
    asked = only(commands.partitioned_metadata(5, "persistent://t/n/x", auto_create=False)).partitionMetadata
    assert asked.metadata_auto_creation_enabled is False
    assert asked.HasField("metadata_auto_creation_enabled")
    lookup = only(
        commands.lookup(6, "persistent://t/n/x", authoritative=True, listener_name="ext")
    ).lookupTopic
    assert (lookup.request_id, lookup.authoritative, lookup.advertised_listener_name) == (6, True, "ext")
    schema = only(commands.get_schema(7, "persistent://t/n/x", b"\0\1")).getSchema
    assert (schema.request_id, schema.schema_version) == (7, b"\0\1")
    assert only(commands.success(8)).success.request_id == 8


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("PRODUCER", 3),
        ("SUBSCRIBE", 5),
        ("SEEK", 2),
        ("UNSUBSCRIBE", 2),
        ("GET_LAST_MESSAGE_ID", 2),
        ("CLOSE_CONSUMER", 2),
        ("CONSUMER_STATS", 1),
        ("GET_OR_CREATE_SCHEMA", 1),
        ("NEW_TXN", 1),
        ("TC_CLIENT_CONNECT_REQUEST", 1),
        ("WATCH_TOPIC_LIST", 1),
    ],
)
def test_the_request_id_of_any_request(name: str, number: int) -> None:
    kind = BaseCommand.Type.Value(name)
    command = BaseCommand(type=kind)
    fillers = {FieldDescriptor.TYPE_STRING: "x", FieldDescriptor.TYPE_BYTES: b""}
    body = body_of(command)
    for field in body.DESCRIPTOR.fields:
        if field.is_required:
            setattr(
                body,
                field.name,
                77 if field.name == "request_id" else fillers.get(field.type, 0),
            )
    assert body.DESCRIPTOR.fields_by_number[number].name == "request_id"
    assert commands.request_id_of(only(commands.encode(command))) == 77


def test_a_refusal_has_the_form_of_the_answer() -> None:
    asked = [
        (commands.partitioned_metadata(5, "t"), "partitionMetadataResponse"),
        (commands.lookup(5, "t"), "lookupTopicResponse"),
        (commands.get_topics(5, "t/n"), "error"),
    ]
    for request, name in asked:
        body = getattr(only(commands.refuse(only(request), ServerError.MetadataError, "no")), name)
        assert (body.request_id, body.error, body.message) == (5, ServerError.MetadataError, "no")
    schema = only(commands.refuse(only(commands.get_schema(5, "t")), ServerError.TopicNotFound, "none"))
    assert (schema.getSchemaResponse.error_code, schema.getSchemaResponse.error_message) == (11, "none")
    flow = only(
        commands.refuse(commands.decode(b"\x08\x0b\x5a\x00"), ServerError.NotAllowedError, "no")
    ).error
    assert (flow.request_id, flow.error) == (2**64 - 1, ServerError.NotAllowedError)


def test_no_request_id_where_there_is_none() -> None:
    for raw in (b"\x08\x12", b"\x08\x63", b"\x08\x0b\x5a\x00", b"\x08\x0a\x52\x02\x08\x01"):
        assert commands.request_id_of(commands.decode(raw)) is None


def test_unknown_fields_survive() -> None:
    command = commands.decode(b"\x08\x22\x92\x02\x08\x08\x01\x12\x01t\x98\x06\x05")  # field 99
    command.getSchema.request_id = 2
    assert b"\x98\x06\x05" in commands.encode(command)
    assert frame(command.SerializeToString()) == commands.encode(command)
