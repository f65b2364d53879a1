"""The units of answers that have pages, by their keys: a model that knows nothing of the server's own code."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from broker_core.wire.kafka import (
    CONSUMER_GROUP_DESCRIBE,
    DESCRIBE_ACLS,
    DESCRIBE_CONFIGS,
    DESCRIBE_GROUPS,
    DESCRIBE_LOG_DIRS,
    DESCRIBE_PRODUCERS,
    DESCRIBE_TRANSACTIONS,
    LIST_GROUPS,
    LIST_OFFSETS,
    LIST_PARTITION_REASSIGNMENTS,
    LIST_TRANSACTIONS,
    METADATA,
    OFFSET_FETCH,
    ZERO_ID,
    Api,
    Fields,
)

__all__ = ["Order", "Unit", "cursor_fields", "in_order", "place_of", "units_of"]

Order = tuple[Any, ...]
Unit = tuple[Order, Any]


def in_order(units: list[Unit]) -> list[Unit]:
    """By their keys, and in any order within a key."""
    return sorted(units, key=lambda unit: (unit[0], str(unit[1])))


def text(value: str) -> bytes:
    return value.encode("utf-16-be")


def topic_of(name: str | None, topic_id: uuid.UUID = ZERO_ID) -> tuple[bytes, bytes]:
    return text(name or ""), b"" if name else topic_id.bytes


def partitions(answer: Fields) -> Iterator[Unit]:
    for row in answer["topics"]:
        inner = row.pop("partitions")
        at = topic_of(row["name"], row.get("topic_id", ZERO_ID))
        for one in inner:
            yield (*at, max(one["partition_index"], 0)), (str(row), str(one))
        if not inner:
            yield (*at, 0), str(row)


def log_dirs(answer: Fields) -> Iterator[Unit]:
    for directory in answer["results"]:
        name = text(directory["log_dir"])
        topics = directory.pop("topics")
        for at, one in partitions({"topics": topics}):
            yield (*at, name), (str(directory), one)
        if not topics:
            yield (b"", ZERO_ID.bytes, 0, name), str(directory)


def offsets(ids: Mapping[str, uuid.UUID], body: Fields, answer: Fields) -> Iterator[Unit]:
    names = {topic_id: name for name, topic_id in ids.items()}
    groups = answer["groups"]
    if "group_id" in body:
        groups = [{"group_id": body["group_id"], "topics": answer["topics"]}]
    for group in groups:
        group_id, rows = text(group["group_id"]), group.pop("topics")
        if not rows:
            if "groups" in body:
                yield (group_id, b"", ZERO_ID.bytes, 0), str(group)
            continue
        for row in rows:
            row["name"] = row["name"] or names.get(row.get("topic_id", ZERO_ID), "")
        yield from [((group_id, *at), (str(group), one)) for at, one in partitions({"topics": rows})]


def producers(answer: Fields) -> Iterator[Unit]:
    for topic in answer["topics"]:
        at = topic_of(topic["name"])
        for row in topic["partitions"]:
            inner, index = row.pop("active_producers"), max(row["partition_index"], 0)
            yield from [((*at, index, -one["producer_id"]), (str(row), str(one))) for one in inner]
            if not inner:
                yield (*at, index, -(2**63 - 1)), str(row)
        if not topic["partitions"]:
            yield (*at, 0, -(2**63 - 1)), topic["name"]


def members(answer: Fields) -> Iterator[Unit]:
    for row in answer["groups"]:
        at, inner = text(row["group_id"]), row.pop("members")
        yield from [((at, text(one["member_id"])), (str(row), str(one))) for one in inner]
        if not inner:
            yield (at, b""), str(row)


def rows_of(array: str, order: Callable[[Fields], Order]) -> Callable[[Fields], Iterator[Unit]]:
    return lambda answer: ((order(row), str(row)) for row in answer[array])


def resource(row: Fields) -> Order:
    return text(row["resource_name"]), row["resource_type"]


def units_of(api: Api, body: Fields, answer: Fields, ids: Mapping[str, uuid.UUID]) -> list[Unit]:
    """Each with its key; ``ids`` are those of the topics that the asker may see."""
    if api is OFFSET_FETCH:
        return list(offsets(ids, body, answer))
    find: dict[Api, Callable[[Fields], Iterator[Unit]]] = {
        METADATA: partitions,
        LIST_OFFSETS: partitions,
        LIST_PARTITION_REASSIGNMENTS: partitions,
        DESCRIBE_LOG_DIRS: log_dirs,
        DESCRIBE_PRODUCERS: producers,
        LIST_TRANSACTIONS: rows_of("transaction_states", transaction),
        DESCRIBE_TRANSACTIONS: rows_of("transaction_states", transaction),
        LIST_GROUPS: rows_of("groups", lambda row: (text(row["group_id"]),)),
        DESCRIBE_GROUPS: members,
        CONSUMER_GROUP_DESCRIBE: members,
        DESCRIBE_ACLS: rows_of("resources", resource),
        DESCRIBE_CONFIGS: rows_of("results", resource),
    }
    return list(find[api](answer))


def transaction(row: Fields) -> Order:
    return -row["producer_id"], text(row["transactional_id"])


def place_of(api: Api, cursor: Fields) -> Order:
    """The position of a cursor, in the order of the units."""
    if api in (LIST_TRANSACTIONS, DESCRIBE_TRANSACTIONS):
        return transaction(cursor)
    place: list[Any] = []
    for name in [each.name for each in cursor_fields(api)]:
        value = cursor[name]
        if name == "topic_name":
            place += topic_of(value, cursor.get("topic_id", ZERO_ID))
        else:
            place.append(
                text(value) if isinstance(value, str) else -value if name == "producer_id" else value
            )
    return tuple(place)


def cursor_fields(api: Api) -> list[Any]:
    kind = next(each.kind for each in api.request.fields if each.name == "cursor")
    return [each for each in kind.fields if each.tag is None]  # type: ignore[attr-defined]
