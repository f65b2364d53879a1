"""ListOffsets: the first and the last offset of partitions, as of an empty log.

User interfaces ask for them before they show a topic, and show no topic for which they get an error. A consumer is
refused by Fetch, its next request.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from broker_core.servers.kafka.requests.call import HandlerRow, KafkaCall
from broker_core.servers.kafka.topics.named_topics import NamedTopic
from broker_core.wire.kafka import LIST_OFFSETS, ErrorCode, Fields

__all__ = ["LIST_OFFSETS_ROW"]

#: Negative times are questions of their own: from which version on Kafka knows each, and its answer of an empty log.
_QUESTIONS: Final[Mapping[int, tuple[int, int]]] = {
    -1: (1, 0),  # the last offset
    -2: (1, 0),  # the first one
    -3: (7, -1),  # that of the latest time
    -4: (8, 0),  # the first one on this broker
    -5: (9, -1),  # the last one in tiered storage
    -6: (11, -1),  # the first one that is not there yet
}


async def _list(call: KafkaCall) -> Fields:
    requested: Sequence[Fields] = call.body["topics"]
    count = len(requested) + sum(len(topic["partitions"]) for topic in requested)
    names = list(dict.fromkeys(topic["name"] for topic in requested))
    found = {topic.name: topic for topic in await call.services.named.by_name(call, names)}
    return {"topics": await call.off_loop(count, _rows, call.version, requested, found)}


def _rows(version: int, requested: Sequence[Fields], found: Mapping[str | None, NamedTopic]) -> list[Fields]:
    """A row for each topic with all partitions asked for, each once; then, for a topic that the client may not see, one
    for each naming (4.3.1).
    """
    merged: dict[str, dict[int, Fields]] = {}
    denied: list[Fields] = []
    for topic in requested:
        name = topic["name"]
        if found[name].error is ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            rows = [
                {"partition_index": row["partition_index"], "error_code": found[name].error}
                for row in topic["partitions"]
            ]
            denied.append({"name": name, "partitions": rows})
            continue
        for row in topic["partitions"]:
            index, partitions = row["partition_index"], merged.setdefault(name, {})
            is_double = index in partitions
            answer = (
                {"error_code": ErrorCode.INVALID_REQUEST} if is_double else _offset(version, found[name], row)
            )
            partitions[index] = {"partition_index": index} | answer
    return [*({"name": name, "partitions": [*rows.values()]} for name, rows in merged.items()), *denied]


def _offset(version: int, topic: NamedTopic, requested: Fields) -> Fields:
    """The row of a partition, with the first error in the order of Kafka's checks."""
    if topic.error not in (ErrorCode.NONE, ErrorCode.INVALID_TOPIC_EXCEPTION):
        return {"error_code": topic.error}
    if topic.error or not 0 <= requested["partition_index"] < topic.partitions:
        return {"error_code": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    since, offset = _QUESTIONS.get(requested["timestamp"], (1, -1))
    if version < since or requested["timestamp"] < min(_QUESTIONS):
        return {"error_code": ErrorCode.UNSUPPORTED_VERSION}
    if requested["current_leader_epoch"] > 0:
        return {"error_code": ErrorCode.UNKNOWN_LEADER_EPOCH}
    return {"offset": offset, "leader_epoch": min(offset, 0)}


LIST_OFFSETS_ROW: Final = HandlerRow(LIST_OFFSETS, _list)
