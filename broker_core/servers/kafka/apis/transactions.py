"""ListTransactions, DescribeTransactions and DescribeProducers: nothing is produced here, and nothing is under way."""

from __future__ import annotations

from typing import Final

from broker_core.errors import InvalidPattern
from broker_core.kafka import why_illegal
from broker_core.kafka.acls import Operation, ResourceType
from broker_core.patterns import MAX_LENGTH
from broker_core.servers.kafka.requests.call import HandlerRow, KafkaCall, of_many
from broker_core.servers.kafka.topics.named_topics import NamedTopic
from broker_core.wire.kafka import (
    DESCRIBE_PRODUCERS,
    DESCRIBE_TRANSACTIONS,
    LIST_TRANSACTIONS,
    MESSAGES,
    ErrorCode,
    Fields,
)

__all__ = ["TRANSACTION_ROWS"]

_STATES: Final = frozenset(
    {
        "Empty",
        "Ongoing",
        "PrepareCommit",
        "PrepareAbort",
        "CompleteCommit",
        "CompleteAbort",
        "Dead",
        "PrepareEpochFence",
    }
)


async def _list(call: KafkaCall) -> Fields:
    pattern = call.body["transactional_id_pattern"]
    try:
        if pattern:
            compiled = await call.services.pipeline.workers.compile(call.asker, pattern, MAX_LENGTH)
            if not compiled.supported:
                return {"error_code": ErrorCode.INVALID_REGULAR_EXPRESSION}
    except InvalidPattern:
        return {"error_code": ErrorCode.INVALID_REGULAR_EXPRESSION}
    unknown = dict.fromkeys(state for state in call.body["state_filters"] if state not in _STATES)
    return {"unknown_state_filters": list(unknown), "transaction_states": []}


@of_many
def _describe(call: KafkaCall) -> Fields:
    return {
        "transaction_states": [
            {"error_code": _error(call, name), "transactional_id": name, "producer_id": 0}
            for name in call.body["transactional_ids"]
        ]
    }


def _error(call: KafkaCall, name: str) -> ErrorCode:
    if not call.services.authorizer.allows(call, Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, name):
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    return ErrorCode.TRANSACTIONAL_ID_NOT_FOUND if name else ErrorCode.INVALID_REQUEST


async def _producers(call: KafkaCall) -> Fields:
    requested = call.body["topics"]
    names = list(dict.fromkeys(topic["name"] for topic in requested))
    found = await call.services.named.by_name(call, names, operation=Operation.READ, rules="describe")
    by_name = {topic.name: topic for topic in found}
    return {
        "topics": [
            {
                "name": topic["name"],
                "partitions": [
                    _partition(by_name[topic["name"]], index) for index in topic["partition_indexes"]
                ],
            }
            for topic in requested
        ]
    }


def _partition(topic: NamedTopic, index: int) -> Fields:
    if topic.error is ErrorCode.INVALID_TOPIC_EXCEPTION:
        message = why_illegal(topic.name or "")
    else:
        message = topic.message or MESSAGES.get(topic.error)
    error = topic.error
    if not error and not 0 <= index < topic.partitions:
        error, message = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None
    return {"partition_index": index, "error_code": error, "error_message": message}


TRANSACTION_ROWS: Final = (
    HandlerRow(LIST_TRANSACTIONS, _list),
    HandlerRow(DESCRIBE_TRANSACTIONS, _describe),
    HandlerRow(DESCRIBE_PRODUCERS, _producers),
)
