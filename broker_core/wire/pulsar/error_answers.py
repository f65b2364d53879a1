"""Encoding of refusals as the response type of each command, if clients would not notice an ERROR.

Clients recognise some answers by their type: an ERROR instead leaves the request without an answer until its
time-out. docs/reference/pulsar-behaviour.md#answers-that-clients-wait-for
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from broker_core.errors import ServerError
from broker_core.wire.pulsar.lookup_commands import LOOKUP_COMMANDS, set_error
from broker_core.wire.pulsar.messages.pulsar_api_pb2 import BaseCommand

__all__ = ["awaits_answer", "refusal_in_own_form"]

#: The answers of commands that only brokers answer, by the type of the command. Every other one is answered by ERROR.
_ANSWERS: Final[Mapping[int, BaseCommand.Type.ValueType]] = MappingProxyType(
    {
        BaseCommand.ACK: BaseCommand.ACK_RESPONSE,
        BaseCommand.CONSUMER_STATS: BaseCommand.CONSUMER_STATS_RESPONSE,
        BaseCommand.NEW_TXN: BaseCommand.NEW_TXN_RESPONSE,
        BaseCommand.ADD_PARTITION_TO_TXN: BaseCommand.ADD_PARTITION_TO_TXN_RESPONSE,
        BaseCommand.ADD_SUBSCRIPTION_TO_TXN: BaseCommand.ADD_SUBSCRIPTION_TO_TXN_RESPONSE,
        BaseCommand.END_TXN: BaseCommand.END_TXN_RESPONSE,
        BaseCommand.END_TXN_ON_PARTITION: BaseCommand.END_TXN_ON_PARTITION_RESPONSE,
        BaseCommand.END_TXN_ON_SUBSCRIPTION: BaseCommand.END_TXN_ON_SUBSCRIPTION_RESPONSE,
        BaseCommand.TC_CLIENT_CONNECT_REQUEST: BaseCommand.TC_CLIENT_CONNECT_RESPONSE,
        BaseCommand.SCALABLE_TOPIC_LOOKUP: BaseCommand.SCALABLE_TOPIC_UPDATE,
        BaseCommand.SCALABLE_TOPIC_SUBSCRIBE: BaseCommand.SCALABLE_TOPIC_SUBSCRIBE_RESPONSE,
        BaseCommand.WATCH_SCALABLE_TOPICS: BaseCommand.WATCH_SCALABLE_TOPICS_UPDATE,
        BaseCommand.WATCH_TC_ASSIGNMENTS: BaseCommand.WATCH_TC_ASSIGNMENTS_UPDATE,
    }
)
#: Commands with an answer, but without a request id: their sessions and watches have ids of their own.
_WITHOUT_REQUEST_ID: Final = frozenset(
    {
        BaseCommand.SCALABLE_TOPIC_LOOKUP,
        BaseCommand.WATCH_SCALABLE_TOPICS,
        BaseCommand.WATCH_TC_ASSIGNMENTS,
    }
)


def awaits_answer(command: BaseCommand, request_id: int | None) -> bool:
    """Whether the sender waits for an answer, which may be a refusal."""
    return request_id is not None or command.type in _WITHOUT_REQUEST_ID


def refusal_in_own_form(
    command: BaseCommand, request_id: int | None, code: ServerError, message: str
) -> BaseCommand | None:
    """The command's own type of answer as a refusal; ``None`` if an ERROR refuses it."""
    if not awaits_answer(command, request_id):
        return None
    row = LOOKUP_COMMANDS.get(command.type)
    if row is not None:
        assert request_id is not None
        return row.failed(request_id, code, message)
    kind = _ANSWERS.get(command.type)
    if kind is None:
        return None
    answer = BaseCommand(type=kind)
    body = _body(answer)
    for field, value in _body(command).ListFields():
        if field.name in body.DESCRIPTOR.fields_by_name:  # by which the client finds its request
            setattr(body, field.name, value)
    if command.type == BaseCommand.NEW_TXN:
        # Java finds the coordinator's requests by this half of a transaction's id, and closes if it is missing.
        body.txnid_most_bits = command.newTxn.tc_id
    set_error(body, code, message)
    return answer


def _body(command: BaseCommand) -> Any:
    return getattr(command, BaseCommand.DESCRIPTOR.fields_by_number[command.type].name)
