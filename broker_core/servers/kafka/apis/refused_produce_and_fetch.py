"""The first requests of producers and consumers: answered at once, with codes at which their clients give up.

There is no log of messages here. Without an answer, or with a retriable one, clients wait for minutes and do not report
why.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from broker_core.servers.kafka.requests.call import CloseClient, HandlerRow, KafkaCall, of_many
from broker_core.wire.kafka import (
    FETCH,
    FIND_COORDINATOR,
    INIT_PRODUCER_ID,
    PRODUCE,
    ErrorCode,
    Fields,
)

__all__ = ["FAIL_FAST_ROWS", "NO_LOG", "fail_fast_rows"]

NO_LOG: Final = "This server lists and administers topics; it keeps no messages"
#: The version of FindCoordinator from which on several are looked for.
_SEVERAL: Final = 4


def _produce(call: KafkaCall, text: str) -> Fields:
    if call.body["acks"] == 0:  # its client waits for no answer, and would never know
        raise CloseClient(text)
    error = {
        "error_code": ErrorCode.POLICY_VIOLATION,
        "base_offset": -1,
        "error_message": text,
    }
    return {
        "responses": [
            {
                "name": topic["name"],
                "topic_id": topic["topic_id"],
                "partition_responses": [
                    {"index": partition["index"], **error} for partition in topic["partition_data"]
                ],
            }
            for topic in call.body["topic_data"]
        ]
    }


@of_many
def _fetch(call: KafkaCall) -> Fields:
    return {
        "responses": [
            {
                "topic": topic["topic"],
                "topic_id": topic["topic_id"],
                "partitions": [
                    {
                        "partition_index": partition["partition"],
                        "error_code": ErrorCode.TOPIC_AUTHORIZATION_FAILED,
                        "high_watermark": -1,
                    }
                    for partition in topic["partitions"]
                ],
            }
            for topic in call.body["topics"]
        ]
    }


@of_many
def _find_coordinator(call: KafkaCall) -> Fields:
    nowhere = {
        "error_code": ErrorCode.GROUP_AUTHORIZATION_FAILED,
        "error_message": NO_LOG,
        "node_id": -1,
        "port": -1,
    }
    if call.body["key_type"] == 1:
        nowhere["error_code"] = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    if call.version >= _SEVERAL:
        return {"coordinators": [{"key": key, **nowhere} for key in call.body["coordinator_keys"]]}
    return nowhere


def _init_producer_id(call: KafkaCall) -> Fields:
    if call.body["transactional_id"] is not None:
        error = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        return {"error_code": error, "producer_id": -1, "producer_epoch": -1}
    # Java's producers ask for an id first, by default. This API has no text, Produce has.
    return {"producer_id": 0, "producer_epoch": 0}


def fail_fast_rows(text: Callable[[KafkaCall], str]) -> tuple[HandlerRow, ...]:
    """The rows of requests that are refused by a server without messages; ``text`` says why."""
    return (
        # Older clients of librdkafka compress nothing if Produce does not begin at 0.
        HandlerRow(PRODUCE, of_many(lambda call: _produce(call, text(call))), shown_from=0),
        HandlerRow(FETCH, _fetch),
        HandlerRow(INIT_PRODUCER_ID, _init_producer_id),
    )


FAIL_FAST_ROWS: Final = (
    *fail_fast_rows(lambda _call: NO_LOG),
    HandlerRow(FIND_COORDINATOR, _find_coordinator),
)
