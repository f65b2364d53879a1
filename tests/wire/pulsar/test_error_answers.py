"""Refusals: each command in the form that its sender looks for, and found by what the sender finds it by."""

from __future__ import annotations

from typing import Any

import pytest

from broker_core.errors import ServerError
from broker_core.wire.pulsar import HEADER_SIZE, LOOKUP_COMMANDS, commands
from broker_core.wire.pulsar.error_answers import awaits_answer, refusal_in_own_form
from broker_core.wire.pulsar.messages.pulsar_api_pb2 import BaseCommand

# The fields of each answer as numbers, as clients read them: (number of the answer, {field: value}). The code is 22.
OF_TXN = {"request_id": 9, "txnid_least_bits": 5, "txnid_most_bits": 4}
REFUSED = [
    ("ACK", {"consumer_id": 7, "request_id": 9}, 38, {1: 7, 4: 22, 5: "no", 6: 9}),
    ("CONSUMER_STATS", {"request_id": 9}, 26, {1: 9, 2: 22, 3: "no"}),
    ("NEW_TXN", {"request_id": 9, "tc_id": 4}, 51, {1: 9, 3: 4, 4: 22, 5: "no"}),
    *(
        (name, OF_TXN, number, {1: 9, 2: 5, 3: 4, 4: 22, 5: "no"})
        for name, number in (
            ("ADD_PARTITION_TO_TXN", 53),
            ("ADD_SUBSCRIPTION_TO_TXN", 55),
            ("END_TXN", 57),
            ("END_TXN_ON_PARTITION", 59),
            ("END_TXN_ON_SUBSCRIPTION", 61),
        )
    ),
    ("TC_CLIENT_CONNECT_REQUEST", {"request_id": 9}, 63, {1: 9, 2: 22, 3: "no"}),
    ("SCALABLE_TOPIC_LOOKUP", {"session_id": 9}, 71, {1: 9, 3: 22, 4: "no"}),
    ("SCALABLE_TOPIC_SUBSCRIBE", {"request_id": 9}, 74, {1: 9, 2: 22, 3: "no"}),
    ("WATCH_SCALABLE_TOPICS", {"watch_id": 9}, 77, {1: 9, 4: 22, 5: "no"}),
    ("WATCH_TC_ASSIGNMENTS", {"watch_id": 9}, 80, {1: 9, 3: 22, 4: "no"}),
    ("PARTITIONED_METADATA", {"request_id": 9, "topic": "t"}, 22, {2: 9, 3: 1, 4: 22, 5: "no"}),
    ("LOOKUP", {"request_id": 9, "topic": "t"}, 24, {3: 2, 4: 9, 6: 22, 7: "no"}),
    ("GET_SCHEMA", {"request_id": 9, "topic": "t"}, 35, {1: 9, 2: 22, 3: "no"}),
    ("GET_OR_CREATE_SCHEMA", {"request_id": 9, "topic": "t", "schema": b"s"}, 40, {1: 9, 2: 22, 3: "no"}),
    # Those that have no answer with an error of their own.
    ("PRODUCER", {"topic": "t", "producer_id": 1, "request_id": 9}, 14, {1: 9, 2: 22, 3: "no"}),
    ("SEEK", {"consumer_id": 1, "request_id": 9}, 14, {1: 9, 2: 22, 3: "no"}),
    ("UNSUBSCRIBE", {"consumer_id": 1, "request_id": 9}, 14, {1: 9, 2: 22, 3: "no"}),
    ("GET_LAST_MESSAGE_ID", {"consumer_id": 1, "request_id": 9}, 14, {1: 9, 2: 22, 3: "no"}),
]  # fmt: skip


def command_of(name: str, fields: dict[str, Any]) -> BaseCommand:
    command = BaseCommand(type=BaseCommand.Type.Value(name))
    body = body_of(command)
    body.SetInParent()
    for field, value in fields.items():
        setattr(body, field, value)
    return command


def body_of(command: BaseCommand) -> Any:
    return getattr(command, BaseCommand.DESCRIPTOR.fields_by_number[command.type].name)


@pytest.mark.parametrize(("name", "fields", "number", "expected"), REFUSED, ids=[row[0] for row in REFUSED])
def test_a_refusal_has_the_form_of_its_answer(
    name: str, fields: dict[str, Any], number: int, expected: dict[int, Any]
) -> None:
    command = command_of(name, fields)
    assert commands.is_answered(command)
    answer = commands.decode(commands.refuse(command, ServerError.NotAllowedError, "no")[HEADER_SIZE:])
    assert answer.type == number
    assert {field.number: value for field, value in body_of(answer).ListFields()} == expected


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("ACK", {"consumer_id": 7}),
        ("SCALABLE_TOPIC_CLOSE", {"session_id": 1}),
        ("WATCH_SCALABLE_TOPICS_CLOSE", {"watch_id": 1}),
        ("WATCH_TC_ASSIGNMENTS_CLOSE", {"watch_id": 1}),
        ("FLOW", {}),
        ("SEND", {}),
    ],
)
def test_nobody_waits_for_the_answer_of_these(name: str, fields: dict[str, Any]) -> None:
    command = command_of(name, fields)
    assert not commands.is_answered(command)
    assert not awaits_answer(command, None)
    assert refusal_in_own_form(command, None, ServerError.NotAllowedError, "no") is None


def test_every_lookup_command_has_its_own_form() -> None:
    assert {BaseCommand.Type.Value(name) for name, *_ in REFUSED} >= set(LOOKUP_COMMANDS)
