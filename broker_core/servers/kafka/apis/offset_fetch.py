"""OffsetFetch: no group has committed anything, so that every partition of the request has no offset (-1)."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Final

from broker_core.kafka.acls import Operation, ResourceType
from broker_core.servers.kafka.requests.call import HandlerRow, KafkaCall
from broker_core.wire.kafka import OFFSET_FETCH, ErrorCode, Fields

__all__ = ["OFFSET_FETCH_ROW", "refused_offsets"]

#: The first version with several groups, the first that names topics by id, and the first with an error of a group.
_SEVERAL: Final = 8
_BY_ID: Final = 10
_OF_GROUP: Final = 2


async def _fetch(call: KafkaCall) -> Fields:
    body = call.body
    groups = body["groups"] if call.version >= _SEVERAL else [body]
    ids: dict[uuid.UUID, ErrorCode] = {}
    if call.version >= _BY_ID:
        named = dict.fromkeys(row["topic_id"] for group in groups for row in group["topics"] or ())
        found = await call.services.named.by_id(call, list(named))
        ids = {topic_id: topic.error for topic_id, topic in zip(named, found, strict=True)}
    elif call.page is not None:  # it has the ids of its topics
        names = dict.fromkeys(row["name"] for group in groups for row in group["topics"] or ())
        await call.services.named.by_name(call, list(names))
    count = sum(len(row["partition_indexes"]) for group in groups for row in group["topics"] or ())
    rows = await call.off_loop(count, _groups, call, groups, ids)
    if call.version >= _SEVERAL:
        return {"groups": rows}
    if call.version < _OF_GROUP and rows[0]["error_code"]:
        return refused_offsets(body, rows[0]["error_code"])
    return {"topics": rows[0]["topics"], "error_code": rows[0]["error_code"]}


def refused_offsets(body: Fields, code: ErrorCode) -> Fields:
    """The answer with an error of the group before version 2: in the row of each partition of the request."""
    failed = {"committed_offset": -1, "metadata": "", "error_code": code}
    return {
        "topics": [
            {
                "name": row["name"],
                "partitions": [{"partition_index": index, **failed} for index in row["partition_indexes"]],
            }
            for row in body["topics"]
        ]
    }


def _groups(call: KafkaCall, groups: Sequence[Fields], ids: Mapping[uuid.UUID, ErrorCode]) -> list[Fields]:
    allows = call.services.authorizer.allows
    return [
        {"group_id": group["group_id"], "topics": _topics(call, group["topics"] or (), ids), "error_code": 0}
        if allows(call, Operation.DESCRIBE, ResourceType.GROUP, group["group_id"])
        else {
            "group_id": group["group_id"],
            "topics": [],
            "error_code": ErrorCode.GROUP_AUTHORIZATION_FAILED,
        }
        for group in groups
    ]


def _topics(call: KafkaCall, topics: Sequence[Fields], ids: Mapping[uuid.UUID, ErrorCode]) -> list[Fields]:
    rows: list[Fields] = []
    for topic in topics:
        if call.version >= _BY_ID:
            error = ids[topic["topic_id"]]
            row: Fields = {"topic_id": topic["topic_id"]}
        else:
            allowed = call.services.authorizer.allows(
                call, Operation.DESCRIBE, ResourceType.TOPIC, topic["name"]
            )
            error = ErrorCode.NONE if allowed else ErrorCode.TOPIC_AUTHORIZATION_FAILED
            row = {"name": topic["name"]}
        partitions = [
            {"partition_index": index, "committed_offset": -1, "metadata": "", "error_code": error}
            for index in topic["partition_indexes"]
        ]
        rows.append(row | {"partitions": partitions})
    return rows


OFFSET_FETCH_ROW: Final = HandlerRow(OFFSET_FETCH, _fetch)
