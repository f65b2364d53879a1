"""Topics and resources of a cluster that rules, gates, masks and plugins hide from a client.

The cluster itself does not know of it. A hidden topic is not asked for, and is left out of answers; if it was named, it
has the row of a topic that does not exist, or may not be known.
"""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, Final

from broker_core.access import Access
from broker_core.errors import ListingFailed
from broker_core.kafka import is_legal
from broker_core.kafka.acls import PatternType, ResourceType
from broker_core.memory import SMALL_ANSWER
from broker_core.servers.kafka.pages.page_rows import refusal_of
from broker_core.servers.kafka.pages.page_shapes import Level, PageShape, arrays_of
from broker_core.servers.kafka.requests.call import AnswerLater, CloseClient, KafkaCall
from broker_core.servers.kafka.requests.page_parts import names_on_page
from broker_core.servers.kafka.row_error import FAILURES, RowError, code_of
from broker_core.servers.kafka.topics.listed_topics import are_many
from broker_core.servers.kafka.topics.named_topics import NamedTopic
from broker_core.service import Action, right_to
from broker_core.wire.kafka import (
    DESCRIBE_PRODUCERS,
    OFFSET_FETCH,
    ZERO_ID,
    Api,
    ErrorCode,
    Fields,
    MalformedMessage,
    RawRows,
    Reader,
)

__all__ = [
    "DECODED",
    "Undecided",
    "denied",
    "guarded",
    "hidden",
    "hidden_ids",
    "hidden_resources",
    "hold_decoded",
    "left_out",
    "topics_of_member",
    "without_hidden",
    "without_hidden_resources",
]

#: Bytes of memory for each byte of a large answer that is decoded.
DECODED: Final = 8
#: The row of a partition for which no offset was committed.
_NO_OFFSET: Final = {"committed_offset": -1, "committed_leader_epoch": -1, "metadata": "", "error_code": 0}


class Undecided(CloseClient):
    """Refusal while it is not known which topics are hidden: the client asks again."""


async def hidden(
    call: KafkaCall, names: Iterable[str], *, action: str = "describe", rules: str | None = None
) -> Mapping[str, NamedTopic]:
    """The topics that are hidden from the client, with the errors that it gets for them.

    Rules and gates are asked whether it may do ``action``, or rules ``rules`` instead, before a change. Raises
    :exc:`Undecided` if the cluster does not answer, or there is no memory.
    """
    if not call.may_hide_topics:
        return {}
    wanted: Sequence[str] = list(dict.fromkeys(names))
    if are_many(wanted) and rules in (None, "list") and call.passes_now:
        with suppress(ListingFailed):  # each of them says why
            wanted = await call.services.topics.unlisted(call, wanted)
    found = await call.services.named.by_name(call, wanted, operation=None, action=action, rules=rules)
    _check_decided(found, {ErrorCode.REQUEST_TIMED_OUT})
    return {row.name or "": row for row in found if row.error}


async def left_out(
    call: KafkaCall, names: Iterable[str], *, action: str = "describe", rules: str | None = None
) -> Mapping[str, NamedTopic]:
    """The hidden topics to leave out of an answer whose rows have no errors; see :func:`hidden`.

    Raises :exc:`Undecided` if that is unknown for any: without it an answer would be too short.
    """
    gone = await hidden(call, names, action=action, rules=rules)
    _check_decided(gone.values())
    return gone


async def hidden_ids(
    call: KafkaCall, ids: Iterable[uuid.UUID], *, rules: str | None = None
) -> frozenset[uuid.UUID]:
    """The ids of topics that are hidden from the client; see :func:`left_out`."""
    if not call.may_hide_topics:
        return frozenset()
    wanted = list(dict.fromkeys(ids))
    found = await call.services.named.by_id(call, wanted, operation=None, rules=rules)
    _check_decided(found)
    return frozenset(each for each, row in zip(wanted, found, strict=True) if row.error)


def _check_decided(found: Iterable[NamedTopic], codes: Collection[ErrorCode] = FAILURES) -> None:
    for row in found:
        if row.error in codes:
            raise Undecided(f"it cannot be decided which topics are hidden: {row.message or row.error.name}")


async def hidden_resources(
    call: KafkaCall, rows: Iterable[Fields], action: Action | None = None
) -> Callable[[Fields], bool]:
    """A function that says whether one of ``rows``, each of a resource, names a hidden topic.

    Rules are asked whether the client may do ``action``, if there is one. Raises :exc:`~..call.CloseClient`.
    """
    names = [name for name in map(_topic_of_resource, rows) if name]
    gone = await left_out(call, names, rules=action and right_to(action))
    if not call.services.pipeline.dispatcher.masks(call.namespace):
        # Rules and gates decide by names; masks are not asked about a missing topic.
        gone = {name: row for name, row in gone.items() if row.error != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    return lambda row: _topic_of_resource(row) in gone


async def guarded(
    later: AnswerLater,
    code: ErrorCode,
    none: Callable[[KafkaCall, RowError], Fields],
    action: Action | None,
    call: KafkaCall,
) -> Fields:
    """A handler of requests that concern no topics: a client that :meth:`.KafkaCall.refusal` refuses gets ``none``."""
    refused = await call.refusal(code, action)
    return await later(call) if refused is None else none(call, refused)


async def denied(call: KafkaCall, action: Action, names: Iterable[str]) -> dict[str, RowError]:
    """The errors of topics that rules and gates do not let the client change."""
    pipeline = call.services.pipeline
    if not pipeline.has_guards:
        return {}
    refused = {}
    for name in dict.fromkeys(names):
        access = Access(right_to(action), call.namespace, call.topic(name), call.asker)
        try:
            await pipeline.authorize(access, call.deadline, some=True)
        except ListingFailed as failure:
            refused[name] = RowError(code_of(failure), failure.message)
    return refused


async def without_hidden(api: Api, later: AnswerLater, call: KafkaCall) -> Fields:
    """A handler of requests and answers with topics, without the hidden ones."""
    if not call.may_hide_topics:
        return await later(call)
    shape = arrays_of(api, call.version)
    # Arrays of requests by ids, whose pages have no topics, have the names of the answer's.
    levels = shape.answered if shape.nameless else shape.requested
    names = await call.off_loop(_unread(levels, call.body), _topics_of, levels, call.body)
    requested = await _keys_of(call, names)
    if not requested:
        return await _shown(call, shape, await later(call), names)
    keep = partial(_part, levels, call.body, requested)
    body = await call.off_loop(len(names), partial(keep, have=False))
    fields = await _shown(call, shape, await later(replace(call, body=body)), names)
    if shape.sparse:
        return fields

    def joined() -> Fields:
        refused = _refusals(api, shape, keep(have=True), requested)
        if api is DESCRIBE_PRODUCERS and call.page is None:
            return _in_request_order(
                fields, refused, [row["name"] in requested for row in call.body["topics"]]
            )
        return _joined(fields, refused)

    await hold_decoded(call, fields)
    return await call.off_loop(len(names), joined)


async def without_hidden_resources(
    array: str, later: AnswerLater, action: Action | None, call: KafkaCall
) -> Fields:
    """A handler of answers whose ``array`` has rows of resources, without the ones of :func:`hidden_resources`."""
    fields = await later(call)
    if not call.may_hide_topics:
        return fields
    await hold_decoded(call, fields)
    rows = list(fields.get(array) or ())
    is_hidden = await hidden_resources(call, rows, action)
    if not any(map(is_hidden, rows)):
        return fields
    return fields | {array: [row for row in rows if not is_hidden(row)]}


def _topic_of_resource(row: Fields) -> str | None:
    """The topic of a resource that is one by its whole name."""
    name: str = row["resource_name"]
    if row["resource_type"] != ResourceType.TOPIC or not is_legal(name):  # * is every topic
        return None
    return name if row.get("pattern_type", PatternType.LITERAL) == PatternType.LITERAL else None


def _refusals(api: Api, shape: PageShape, body: Fields, requested: Mapping[Any, ErrorCode]) -> Fields:
    if api is OFFSET_FETCH:
        return _without_offsets(shape, body)
    found: dict[str, list[Fields]] = {}
    level = next(each for each in shape.requested if "topic_name" in each.keys)
    for row in body[level.array]:
        error = requested[_key(level, row)]
        part = refusal_of(api, shape, {**body, level.array: [row]}, error, "")
        for name, rows in part.items():
            found.setdefault(name, []).extend(rows)
    return found


def _without_offsets(shape: PageShape, body: Fields) -> Fields:
    """Rows of topics for which no group has committed anything; of unknown ids, as nodes answer them."""
    rest = _NO_OFFSET | ({"error_code": ErrorCode.UNKNOWN_TOPIC_ID} if shape.nameless else {})

    def topics(rows: Sequence[Fields] | None) -> list[Fields]:
        return [
            {name: row[name] for name in ("name", "topic_id") if name in row}
            | {"partitions": [{"partition_index": index, **rest} for index in row["partition_indexes"]]}
            for row in rows or ()
        ]

    if shape.of_body:
        return {"topics": topics(body["topics"])}
    return {
        "groups": [{"group_id": row["group_id"], "topics": topics(row["topics"])} for row in body["groups"]]
    }


def _joined(fields: Fields, more: Fields) -> Fields:
    """An answer with more rows; groups are there already."""
    if "groups" in more:
        topics: dict[str, deque[list[Fields]]] = {}  # a group may be named twice
        for row in more["groups"]:
            topics.setdefault(row["group_id"], deque()).append(row["topics"])
        rows = []
        for row in fields["groups"]:
            left = topics.get(row["group_id"])
            hidden_ones = left.popleft() if left else []
            rows.append(row if row["error_code"] else row | {"topics": [*row["topics"], *hidden_ones]})
        return fields | {"groups": rows}
    return fields | {name: [*fields[name], *rows] for name, rows in more.items()}


def _in_request_order(fields: Fields, refused: Fields, turns: Iterable[bool]) -> Fields:
    """An answer with a row for each topic in the order asked; ``turns`` says of each whether it is refused."""
    rows = iter(fields["topics"]), iter(refused["topics"])
    found = (next(rows[is_refused], None) for is_refused in turns)
    return fields | {"topics": [row for row in found if row is not None]}


async def _shown(call: KafkaCall, shape: PageShape, fields: Fields, requested: Iterable[Any]) -> Fields:
    """An answer without hidden topics, none of which the request names."""
    next_names = await names_on_page(call, shape, fields)
    if next_names is not None and not await _keys_of(call, next_names.difference(requested)):
        return fields  # what is behind the page is not looked at
    names = set(_topics_of(shape.answered, fields)).difference(requested)
    gone = await _keys_of(call, names)
    if not gone:
        return fields
    await hold_decoded(call, fields)
    return await call.off_loop(len(names), partial(_part, shape.answered, fields, gone, have=False))


async def hold_decoded(call: KafkaCall, fields: Fields) -> None:
    """Hold permits for large rows that stay bytes, and are decoded now."""
    for rows in fields.values():
        if isinstance(rows, RawRows) and len(rows.data) > SMALL_ANSWER:
            await call.hold(len(rows.data) * DECODED)


def _key(level: Level, row: Fields) -> Any:
    """The key of a row's topic: the name, or the id."""
    topic_id = row.get("topic_id", ZERO_ID)
    return row[level.keys["topic_name"]] if topic_id == ZERO_ID else topic_id


def _topics_of(levels: Sequence[Level], parent: Fields) -> list[Any]:
    if not levels:
        return []
    level, rows = levels[0], parent.get(levels[0].array) or []
    if isinstance(rows, RawRows) and len(rows.levels) == len(levels):
        depths = [number for number, each in enumerate(levels) if "topic_name" in each.keys]
        return [name for at in depths for name in rows.texts(levels[at].keys["topic_name"], at)]
    if "topic_name" in level.keys:
        return [_key(level, row) for row in rows]
    return [key for row in rows if isinstance(row, dict) for key in _topics_of(levels[1:], row)]


def _unread(levels: Sequence[Level], parent: Fields) -> int:
    """The approximate number of topics to decode for their names: in bytes whose deeper rows were not noted."""
    rows = parent.get(levels[0].array) if levels else None
    if not isinstance(rows, RawRows) or len(rows.levels) == len(levels):
        return 0
    return len(rows.data) // len(ZERO_ID.bytes)


async def _keys_of(call: KafkaCall, keys: Iterable[Any]) -> dict[Any, ErrorCode]:
    """The hidden topics, by their names or ids, with their errors."""
    wanted = list(keys)
    names = await left_out(call, [key for key in wanted if isinstance(key, str)])
    ids = await hidden_ids(call, [key for key in wanted if not isinstance(key, str)])
    return {name: row.error for name, row in names.items()} | dict.fromkeys(ids, ErrorCode.UNKNOWN_TOPIC_ID)


def _part(levels: Sequence[Level], parent: Fields, keys: Mapping[Any, object], *, have: bool) -> Fields:
    """A message with the topics of ``keys`` alone, or without them."""
    level, rows = levels[0], parent.get(levels[0].array)
    if rows is None:
        return parent
    if "topic_name" in level.keys:
        some = [row for row in rows if (_key(level, row) in keys) is have]
    else:
        some = [_part(levels[1:], row, keys, have=have) for row in rows]
    return {**parent, level.array: some}


def topics_of_member(data: bytes, *, with_partitions: bool) -> list[str] | None:
    """The topics in a subscription or an assignment of Kafka's consumers; ``None`` for bytes that are neither.

    ``with_partitions``: numbers of partitions follow each name.
    """
    if not data:
        return []
    reader = Reader(data)
    try:
        reader.int16()
        names = []
        for _ in range(reader.int32()):
            names.append(reader.plain_string() or "")
            for _ in range(reader.int32() if with_partitions else 0):
                reader.int32()
    except MalformedMessage:
        return None
    return names
