"""Metadata: the one node, and topics: all of them, or some by name or (from version 12) by id.

No topic is ever created by looking, whatever a request allows. An all-topics listing that fails has no answer: clients
read an empty one as no topics.
"""

from __future__ import annotations

import uuid
from collections.abc import Coroutine, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import pyarrow as pa

from broker_core.catalog import FEW_TOPICS
from broker_core.errors import ListingFailed
from broker_core.kafka.acls import CLUSTER_NAME, TOPIC_OPERATIONS, Operation, ResourceType
from broker_core.servers.kafka.large_requests import in_slices
from broker_core.servers.kafka.requests.call import HandlerRow, KafkaCall, or_close
from broker_core.servers.kafka.topics.listed_topics import are_many, with_rows
from broker_core.servers.kafka.topics.named_topics import NamedTopic
from broker_core.wire.kafka import METADATA, NOT_REQUESTED, ZERO_ID, Encoded, ErrorCode, Fields
from broker_core.wire.kafka.topic_fragments import Family, metadata_family, metadata_partitions

__all__ = ["METADATA_ROW", "cluster_operations"]

#: The codes of rows that have no authorized operations: the client may not know that there is such a topic.
_CONCEALED: Final = frozenset({ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.UNKNOWN_TOPIC_ID})
#: The version from which on topics are found by id.
_BY_ID: Final = 12
#: Partitions of all topics that are answered without a task.
_FEW_PARTITIONS: Final = 100


def _metadata(call: KafkaCall) -> Fields | Coroutine[Any, Any, Fields]:
    requested = call.body["topics"]
    if requested is None or (not requested and call.version == 0):
        return _of_all(call)
    if call.size or len(requested) > FEW_TOPICS:
        return _of_many(call, requested)
    return _of(call, requested, _question(call.version, requested))


async def _of_all(call: KafkaCall) -> Fields:
    with or_close():
        topics = call.services.topics
        return _answer(call, await topics.all_encoded(call, _family(call), operations=call.wants_operations))


async def _of_many(call: KafkaCall, requested: Sequence[Mapping[str, Any]]) -> Fields:
    question = await call.off_loop(len(requested), _question, call.version, requested)
    made = _of(call, requested, question)
    return made if isinstance(made, dict) else await made


def _of(
    call: KafkaCall, requested: Sequence[Mapping[str, Any]], question: _MetadataQuestion
) -> Fields | Coroutine[Any, Any, Fields]:
    """The answer; without waiting for no topics, as clients want with each connection, and for a few topics."""
    if question.refusal is not None:
        return _refused(requested, question.refusal)
    rows = call.services.named.now(call, question.names, question.ids)
    if rows is None or sum(row.partitions for row in rows) > _FEW_PARTITIONS:
        return _looked_for(call, question)
    return _answer(call, [_row(call, row) for row in _in_order(rows)])


async def _looked_for(call: KafkaCall, question: _MetadataQuestion) -> Fields:
    listed, names = await _listed(call, question.names)
    named = call.services.named
    if question.ids:
        rows = await named.by_id(call, question.ids)
    else:
        unlisted = None if listed is None else await call.off_loop(len(names), named.unlisted, names)
        rows = await named.by_name(call, names) if unlisted is None else unlisted
    rows = await call.off_loop(len(rows), _in_order, rows)
    found = await in_slices(partial(_row, call), rows)
    if listed is None:
        return _answer(call, found)
    return _answer(call, await call.off_loop(len(found), with_rows, METADATA, call.version, listed, found))


async def _listed(call: KafkaCall, names: Sequence[str]) -> tuple[Encoded | None, Sequence[str]]:
    """The listed topics of many names, encoded, and the names of the others."""
    if not are_many(names) or call.page is not None or not call.services.named.are_listed(call):
        return None, names
    try:
        column = pa.array(names, pa.large_string()).cast(pa.large_binary())
        found = await call.services.topics.named_encoded(
            call, column, _family(call), operations=call.wants_operations
        )
        return found or (None, names)
    except ListingFailed:
        return None, names  # each of them says why


class _MetadataQuestion(NamedTuple):
    """The topics of a request, each once, by their ids or by their names; or the reason why it is refused."""

    ids: Sequence[uuid.UUID] = ()
    names: Sequence[str] = ()
    refusal: ErrorCode | None = None


def _question(version: int, requested: Sequence[Mapping[str, Any]]) -> _MetadataQuestion:
    with_ids = any(row["topic_id"] != ZERO_ID for row in requested)
    if version < _BY_ID and (with_ids or any(row["name"] is None for row in requested)):
        return _MetadataQuestion(refusal=ErrorCode.INVALID_REQUEST)
    if not with_ids and any(row["name"] is None for row in requested):
        return _MetadataQuestion(refusal=ErrorCode.UNKNOWN_SERVER_ERROR)
    if with_ids:
        ids = dict.fromkeys(row["topic_id"] for row in requested if row["topic_id"] != ZERO_ID)
        return _MetadataQuestion(ids=list(ids))
    return _MetadataQuestion(names=list(dict.fromkeys(row["name"] or "" for row in requested)))


def _in_order(rows: Sequence[NamedTopic]) -> list[NamedTopic]:
    """Rows in Kafka's order: existing topics, missing ones, and topics that the client may not know."""
    return sorted(rows, key=lambda row: (row.error in _CONCEALED, row.error is not ErrorCode.NONE))


def _family(call: KafkaCall) -> Family:
    """The family of topics that are listed."""
    operations = TOPIC_OPERATIONS if call.wants_operations else NOT_REQUESTED
    return metadata_family(call.version, call.node.node_id, operations)


def _answer(call: KafkaCall, topics: Sequence[Mapping[str, Any]] | Encoded) -> Fields:
    node = call.node
    fields: Fields = {
        "brokers": [{"node_id": node.node_id, "host": node.host, "port": node.port}],
        "cluster_id": call.services.cluster_id,
        "controller_id": node.node_id,
        "topics": topics,
    }
    if call.body["include_cluster_authorized_operations"]:
        fields["cluster_authorized_operations"] = cluster_operations(call)
    return fields


def cluster_operations(call: KafkaCall) -> int:
    """The bits of the client's operations on the cluster; none if it may not describe it."""
    authorizer = call.services.authorizer
    if authorizer.allows(call, Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME):
        return authorizer.cluster_operations(call)
    return 0


def _row(call: KafkaCall, topic: NamedTopic) -> Fields:
    row: Fields = {
        "error_code": topic.error,
        "name": topic.name,
        "topic_id": topic.topic_id,
        "is_internal": topic.internal,
        "partitions": metadata_partitions(call.version, call.node.node_id, topic.partitions),
    }
    if call.wants_operations and topic.error not in _CONCEALED:
        row["topic_authorized_operations"] = call.services.authorizer.topic_operations(call, topic.name or "")
    return row


def _refused(requested: Sequence[Mapping[str, Any]], error: ErrorCode) -> Fields:
    """The answer to ids in a version without them, or a topic with neither id nor name: as Kafka's for a request that
    it cannot serve at all.
    """
    rows = [
        {"error_code": error, "name": row["name"] or "", "topic_id": row["topic_id"]} for row in requested
    ]
    return {"topics": rows, "error_code": error}


METADATA_ROW: Final = HandlerRow(METADATA, _metadata)
