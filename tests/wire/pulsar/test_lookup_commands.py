"""The table of lookup commands: what is read from the messages, for each row alike."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf.descriptor import Descriptor

from broker_core.access.asker import ACTIONS
from broker_core.errors import ServerError
from broker_core.wire.pulsar import commands
from broker_core.wire.pulsar.lookup_commands import LOOKUP_COMMANDS, LookupCommand
from broker_core.wire.pulsar.messages.pulsar_api_pb2 import BaseCommand

ROWS = pytest.mark.parametrize("row", LOOKUP_COMMANDS.values(), ids=lambda row: row.action)


def known(number: int, message: str) -> tuple[ServerError, str]:
    return ServerError(number), f"known: {message}"


@ROWS
def test_a_row_is_of_a_command_and_its_answer(row: LookupCommand) -> None:
    request, response = commands.command_name(row.request), commands.command_name(row.response)
    assert response == f"{request}_RESPONSE"
    assert LOOKUP_COMMANDS[row.request] is row
    assert row.action in ACTIONS


@ROWS
def test_a_request_names_its_topic_and_has_a_request_id(row: LookupCommand) -> None:
    fields = row.request_body(BaseCommand()).DESCRIPTOR.fields_by_name
    assert {"topic", "request_id"} <= set(fields)
    assert "request_id" in row.response_body(BaseCommand()).DESCRIPTOR.fields_by_name


@ROWS
def test_what_a_request_repeats_is_counted_before_it_is_decoded(row: LookupCommand) -> None:
    """Large commands are counted by their own repeated fields: those of a part of them would not be."""

    def repeats_below(message: Descriptor) -> bool:
        parts = [field.message_type for field in message.fields if field.message_type is not None]
        return any(any(each.is_repeated for each in part.fields) or repeats_below(part) for part in parts)

    assert not repeats_below(row.request_body(BaseCommand()).DESCRIPTOR)


@ROWS
def test_a_refusal_has_code_and_text(row: LookupCommand) -> None:
    answer = row.failed(2**63, ServerError.TopicNotFound, "no such topic")
    assert answer.type == row.response
    answer = commands.decode(commands.encode(answer)[8:])
    row.make_relayable(answer, 5, known)
    body = row.response_body(answer)
    assert body.request_id == 5
    assert next(value for field, value in body.ListFields() if field.name.startswith("error")) == 11
    assert "known: no such topic" in [value for _, value in body.ListFields()]
    if hasattr(body, "response"):
        assert body.response == body.Failed


@ROWS
def test_nobody_claims_to_be_somebody_else(row: LookupCommand) -> None:
    question = BaseCommand(type=row.request)
    body = row.request_body(question)
    body.request_id, body.topic = 7, "t"
    claims = [name for name in body.DESCRIPTOR.fields_by_name if name.startswith("original_")]
    for name in claims:
        setattr(body, name, "admin")
    sent = row.request_body(row.without_identity(question))
    assert {field.name for field, _ in sent.ListFields()} == {"request_id", "topic"}
    assert all(body.HasField(name) for name in claims), "the client's own command is left as it was"


def answer_of(kind: int, **fields: Any) -> tuple[LookupCommand, BaseCommand]:
    row = LOOKUP_COMMANDS[kind]
    answer = BaseCommand(type=row.response)
    row.response_body(answer).request_id = 1
    for name, value in fields.items():
        setattr(row.response_body(answer), name, value)
    return row, answer


@pytest.mark.parametrize(
    ("kind", "fields", "fault"),
    [
        (BaseCommand.PARTITIONED_METADATA, {"partitions": 2**31 - 1, "response": 0}, None),
        (BaseCommand.PARTITIONED_METADATA, {"partitions": 2**31, "response": 0}, "2147483648 partitions"),
        (BaseCommand.PARTITIONED_METADATA, {"response": 9}, "unknown outcome 9"),
        (BaseCommand.LOOKUP, {"response": 1, "brokerServiceUrl": "pulsar://b:6650"}, None),
        (BaseCommand.LOOKUP, {"response": 1, "brokerServiceUrlTls": "pulsar+ssl://b:6651"}, None),
        (BaseCommand.LOOKUP, {"response": 1}, "without the address"),
        (BaseCommand.LOOKUP, {"response": 2}, None),
        (BaseCommand.LOOKUP, {"response": 1, "error": 1}, None),
        (BaseCommand.LOOKUP, {"response": 9}, "unknown outcome 9"),
        (BaseCommand.GET_SCHEMA, {}, None),
    ],
)
def test_which_answers_are_not_passed_on(kind: int, fields: dict[str, Any], fault: str | None) -> None:
    row, answer = answer_of(kind, **fields)
    said = row.relayable_fault(answer)
    assert said is None if fault is None else fault in (said or "")
