"""DescribeTopicPartitions: topics with their partitions in pages, all of them or some by name (KIP-966).

No topics in a request are all topics. Names are answered in their order, each once; those that may not be described
come behind all others, and are no part of the budget.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any, Final

from broker_core.errors import ListingFailed
from broker_core.servers.kafka.call import CloseClient, KafkaCall
from broker_core.servers.kafka.handler_row import HandlerRow
from broker_core.servers.kafka.named_topics import NamedTopic
from broker_core.servers.kafka.topic_pages import Cursor
from broker_core.wire.kafka import DESCRIBE_TOPIC_PARTITIONS, ErrorCode, Fields
from broker_core.wire.kafka.topic_fragments import described_partitions

__all__ = ["DESCRIBE_TOPIC_PARTITIONS_ROW", "MOST_PARTITIONS"]

#: Partitions of a page at most, whatever a client asks for (Kafka's max.request.partition.size.limit).
MOST_PARTITIONS: Final = 2000
#: Names that are looked up at a time.
_AT_ONCE: Final = 200


async def _later(call: KafkaCall) -> Fields:
    names = sorted({row["name"] for row in call.body["topics"]}, key=_utf16)
    cursor = call.body["cursor"]
    start = Cursor("", 0) if cursor is None else Cursor(cursor["topic_name"], cursor["partition_index"])
    if start.partition_index < 0 or (names and cursor is not None and start.topic_name not in names):
        refused = [{"error_code": ErrorCode.INVALID_REQUEST, "name": name} for name in _asked(call.body)]
        return {"topics": refused}
    budget = max(1, min(call.body["response_partition_limit"], MOST_PARTITIONS))
    if names:
        return await _named(call, names, start, budget)
    try:
        found = await call.services.topics.page(call, start, budget, call.node.node_id)
    except ListingFailed as failure:
        raise CloseClient(failure.message) from failure
    return {"topics": found.topics, "next_cursor": _fields(found.next)}


async def _named(call: KafkaCall, names: Sequence[str], start: Cursor, budget: int) -> Fields:
    rows: list[Fields] = []
    denied: list[Fields] = []
    at = bisect_left(names, _utf16(start.topic_name), key=_utf16)
    for low in range(at, len(names), _AT_ONCE):
        for topic in await call.services.named.by_name(call, names[low : low + _AT_ONCE]):
            name = topic.name or ""
            if topic.error is ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                denied.append({"error_code": topic.error, "name": name})
                continue
            if not budget:
                return _answer(rows, denied, Cursor(name, 0))
            first = start.partition_index if name == start.topic_name else 0
            end = min(topic.partitions, first + budget)
            rows.append(_row(call, topic, first, end))
            if end < topic.partitions:
                return _answer(rows, denied, Cursor(name, end))
            budget -= max(end - first, 0)
    return _answer(rows, denied, None)


def _row(call: KafkaCall, topic: NamedTopic, first: int, end: int) -> Fields:
    return {
        "error_code": topic.error,
        "name": topic.name,
        "topic_id": topic.topic_id,
        "is_internal": topic.internal,
        "partitions": described_partitions(call.node.node_id, first, end),
        "topic_authorized_operations": call.services.authorizer.topic_operations(call, topic.name or ""),
    }


def _answer(rows: list[Fields], denied: list[Fields], following: Cursor | None) -> Fields:
    return {"topics": [*rows, *denied], "next_cursor": _fields(following)}


def _fields(cursor: Cursor | None) -> Fields | None:
    return None if cursor is None else cursor._asdict()


def _asked(body: Mapping[str, Any]) -> list[str]:
    return [row["name"] for row in body["topics"]]


def _utf16(name: str) -> bytes:
    """Java's order of texts."""
    return name.encode("utf-16-be", "replace")


DESCRIBE_TOPIC_PARTITIONS_ROW: Final = HandlerRow(DESCRIBE_TOPIC_PARTITIONS, later=_later)
