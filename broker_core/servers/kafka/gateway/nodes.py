"""Metadata, DescribeCluster and FindCoordinator before a cluster: its nodes, at ports of this gateway."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from broker_core.errors import ListingFailed
from broker_core.kafka.acls import TOPIC_OPERATIONS
from broker_core.servers.kafka.gateway.hidden_topics import hidden, left_out
from broker_core.servers.kafka.gateway.relay import (
    ask,
    coordinator,
    front_of,
    lost_nodes,
    nodes_now,
    reader_of_rows,
    with_nodes,
    without_lost,
)
from broker_core.servers.kafka.gateway.shared_listings import of_pass
from broker_core.servers.kafka.pages.page_shapes import arrays_of
from broker_core.servers.kafka.requests.call import HandlerRow, KafkaCall, or_close
from broker_core.servers.kafka.requests.requested_names import are_by_id
from broker_core.servers.kafka.row_error import FAILURES
from broker_core.servers.kafka.topics.listed_topics import are_many, with_rows
from broker_core.wire.kafka import (
    DESCRIBE_CLUSTER,
    DESCRIBE_TOPIC_PARTITIONS,
    FIND_COORDINATOR,
    METADATA,
    NOT_REQUESTED,
    ZERO_ID,
    Encoded,
    ErrorCode,
    Fields,
    RawRows,
)
from broker_core.wire.kafka.topic_fragments import Family, placed_described_family, placed_metadata_family

__all__ = ["NODE_ROWS"]

#: The first version of FindCoordinator with several keys.
_SEVERAL: Final = 4
#: The error of each kind of key: of a group, of a transactional id, of a group of shares.
_DENIED: Final = {1: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED}
#: The errors of topics that are not there for the client.
_MISSING: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    }
)


async def _metadata(call: KafkaCall) -> Fields:
    topics = call.body["topics"]
    of_all = topics is None or (not topics and call.version == 0)
    # What a client may do with each topic, the cluster alone knows if it is asked as the client.
    by_cluster = front_of(call).forwards and call.wants_operations
    if of_all and not by_cluster:
        return await _all_topics(call)
    if topics and are_many(topics) and call.version and call.page is None and not by_cluster:
        named = await _many_topics(call)
        if named is not None:
            return named
    answer = await ask(call, METADATA, {**call.body, "allow_auto_topic_creation": False})
    answer = await with_nodes(call, answer)
    rows = without_lost(call, answer["topics"])
    if rows and call.may_hide_topics:
        rows = await _shown(call, rows, call.body["topics"] or ())
    if call.page is not None:  # the node's answer is newer than the snapshot
        for row in rows:
            call.page.note(row["name"], row["topic_id"])
    return answer | {"topics": rows}


def _family(call: KafkaCall) -> Family:
    """The family of topics of the snapshot."""
    operations = TOPIC_OPERATIONS if call.wants_operations else NOT_REQUESTED
    return placed_metadata_family(call.version, operations, lost_nodes(call))


async def _many_topics(call: KafkaCall) -> Fields | None:
    """Topics by many names, from the snapshot if they are in it, and else from a node; ``None`` if that cannot give
    all.
    """
    rows = call.body["topics"]
    names = await call.off_loop(len(rows), _names_of, call, rows) if call.passes_now else None
    if names is None:
        return None
    family = _family(call)
    try:
        found = await call.services.topics.named_encoded(
            call, pc.unique(names), family, operations=call.wants_operations
        )
    except ListingFailed:
        return None
    if found is None:
        return None
    listed, others = found
    requested = {
        **call.body,
        "topics": [{"name": name} for name in others],
        "allow_auto_topic_creation": False,
    }
    answer = await ask(call, METADATA, requested)
    answer = await with_nodes(call, answer)
    left = without_lost(call, answer["topics"])
    if left and call.may_hide_topics:
        left = await _shown(call, left, requested["topics"])
    topics = await call.off_loop(len(others), with_rows, METADATA, call.version, listed, left)
    return answer | {"topics": topics}


def _names_of(call: KafkaCall, rows: RawRows) -> pa.LargeBinaryArray | None:
    """The names of the topics of the request; ``None``, if one has none, or is asked for by its id."""
    return None if are_by_id(arrays_of(METADATA, call.version), rows) else rows.column("name")


async def _page_of_named(call: KafkaCall, rows: RawRows) -> Fields | None:
    """The page of topics by many names, from the snapshot if it has all."""
    if not are_many(rows) or (call.wants_operations and front_of(call).forwards) or not call.passes_now:
        return None
    kept = front_of(call).kept_request(call.asker, rows)
    if kept is None:  # a name comes twice, or there is no room for the found topics
        return None
    assert call.page is not None
    family = _family(call)
    try:
        topics = await call.services.topics.named_page(call, call.page, kept, family)
    except ListingFailed:
        return None
    return None if topics is None else await _nodes(call) | {"topics": topics}


async def _all_topics(call: KafkaCall) -> Fields:
    """All topics, from the snapshot of the cluster, with the current nodes."""
    answer = await (_nodes(call) if call.version else _nodes_alone(call))
    return answer | {"topics": await _listed(call, _family(call))}


async def _nodes_alone(call: KafkaCall) -> Fields:
    """The nodes alone, for version 0, in which a request without topics asks for all of them."""
    nodes = (await nodes_now(call)).nodes.values()
    return await with_nodes(call, {"brokers": [{"node_id": node.id, "rack": node.rack} for node in nodes]})


async def _nodes(call: KafkaCall) -> Fields:
    """An answer without topics, with the current nodes, or those of the first page of a pass."""
    nothing = {**call.body, "topics": [], "allow_auto_topic_creation": False}
    return await with_nodes(
        call, await of_pass(METADATA, partial(ask, api=METADATA), replace(call, body=nothing, size=0))
    )


async def _partitions(call: KafkaCall) -> Fields:
    """DescribeTopicPartitions: all topics are from the snapshot, and named ones from the node."""
    # What a client may do with each topic, the cluster alone knows if it is asked as the client.
    operations = NOT_REQUESTED if front_of(call).forwards else TOPIC_OPERATIONS
    if not call.body["topics"]:
        return {"topics": await _listed(call, placed_described_family(operations, lost_nodes(call)))}
    names = list(dict.fromkeys(row["name"] for row in call.body["topics"]))
    gone = await hidden(call, names)
    left = [{"name": name} for name in names if name not in gone]
    none: Fields = {"throttle_time_ms": 0, "topics": []}
    answer = await ask(call, DESCRIBE_TOPIC_PARTITIONS, {**call.body, "topics": left}) if left else none
    refused = [_refused(name, row.error, operations) for name, row in gone.items()]
    return answer | {"topics": [*without_lost(call, answer["topics"]), *refused]}


async def _listed(call: KafkaCall, family: Family) -> Encoded:
    """All topics that the client may list, from the snapshot, or the topics of the wanted page."""
    with or_close():
        return await call.services.topics.all_encoded(call, family, operations=True)


async def _shown(call: KafkaCall, rows: list[Fields], requested: Sequence[Fields]) -> list[Fields]:
    """The rows of topics without the hidden ones; named hidden ones have an error.

    Of all topics a client sees the ones that it may list: to look one up takes its name.
    """
    ids = {row.get("topic_id", ZERO_ID) for row in requested} - {ZERO_ID}
    named = {row["name"] for row in requested}
    names = [row["name"] for row in rows if row["name"]]
    gone = await (hidden(call, names) if requested else left_out(call, names, action="list"))
    shown: list[Fields] = []
    for row in rows:
        known = gone.get(row["name"] or "")
        if known is None:
            shown.append(row)
        elif row["topic_id"] in ids:
            code = known.error if known.error in FAILURES else ErrorCode.UNKNOWN_TOPIC_ID
            shown.append({"error_code": code, "topic_id": row["topic_id"], "name": None, "partitions": []})
        elif row["name"] in named:
            shown.append(_refused(row["name"], known.error, row["topic_authorized_operations"]))
    return _in_order(shown, requested)


def _refused(name: str, error: ErrorCode, operations: int) -> Fields:
    """The row of a hidden or missing topic; Kafka tells what a client may do with a missing one, too."""
    row: Fields = {"error_code": error, "name": name, "topic_id": ZERO_ID, "partitions": []}
    if error is not ErrorCode.TOPIC_AUTHORIZATION_FAILED:
        row["topic_authorized_operations"] = operations
    return row


def _in_order(rows: list[Fields], requested: Iterable[Fields]) -> list[Fields]:
    """Rows with missing topics where the node has them, in the order asked: it has hidden ones among the existing ones.

    Of names they are last, and of ids first. The order of existing topics by ids is the one asked, too: of more than
    four a node's own depends on which of them exist (4.3.1).
    """
    turns: dict[Any, int] = {}
    for turn, row in enumerate(requested):
        topic_id = row.get("topic_id", ZERO_ID)
        turns.setdefault(row["name"] if topic_id == ZERO_ID else topic_id, turn)

    def place(row: Fields) -> tuple[int, int]:
        by_id = turns.get(row["topic_id"])
        if by_id is not None:
            is_denied = row["error_code"] == ErrorCode.TOPIC_AUTHORIZATION_FAILED
            return (0 if row["name"] is not None else 1 if is_denied else -1, by_id)
        is_missing = row["error_code"] in _MISSING and row["name"] in turns
        return (1, turns[row["name"]]) if is_missing else (0, 0)

    return sorted(rows, key=place)


async def _cluster(call: KafkaCall) -> Fields:
    answer = await ask(call, DESCRIBE_CLUSTER)
    if answer["error_code"]:
        return answer
    return await with_nodes(call, answer)


async def _coordinators(call: KafkaCall) -> Fields:
    refused = await call.refusal(_DENIED.get(call.body["key_type"], ErrorCode.GROUP_AUTHORIZATION_FAILED))
    nowhere = {"node_id": -1, "host": "", "port": -1}
    if refused is not None:
        error = refused.fields | nowhere
        if call.version < _SEVERAL:
            return error
        return {"coordinators": [{"key": key, **error} for key in call.body["coordinator_keys"]]}
    answer = await ask(call, FIND_COORDINATOR)
    if call.version < _SEVERAL:
        return await coordinator(call, answer)
    return answer | {"coordinators": [await coordinator(call, row) for row in answer["coordinators"]]}


NODE_ROWS: Final = (
    HandlerRow(METADATA, _metadata, fill=_page_of_named, read=reader_of_rows(METADATA)),
    HandlerRow(DESCRIBE_TOPIC_PARTITIONS, _partitions),
    HandlerRow(DESCRIBE_CLUSTER, _cluster),
    HandlerRow(FIND_COORDINATOR, _coordinators),
)
