"""DeleteTopics: topics go with all of their partitions, by name, and from version 6 on by name or id (KIP-516)."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from broker_core.catalog import Edit, TopicMissing, TopicRecord, TopicWrite, deletion
from broker_core.kafka.acls import CLUSTER_NAME, Operation, ResourceType
from broker_core.names import topic_id_text
from broker_core.servers.kafka.requests.call import HandlerRow, KafkaCall, audited, row_of
from broker_core.servers.kafka.row_error import ChangeRefused, RowError, error_of, error_row
from broker_core.servers.kafka.topics.named_topics import NamedTopic
from broker_core.service import AuditRow, TopicEditor, right_to
from broker_core.wire.kafka import DELETE_TOPICS, MESSAGES, ZERO_ID, ErrorCode, Fields

__all__ = ["DELETE_TOPICS_ROW", "deleted_topics", "no_topics_deleted", "refused_topic", "topics_to_delete"]

_BY_ID: Final = 6


async def _delete(call: KafkaCall) -> Fields:
    requested = topics_to_delete(call)
    changes = call.changes(len(requested))
    rows, names, ids = _sorted_out(requested)
    topics = _Topics(call, changes, {row["topic_id"] for row in rows if row["name"] is None})
    rows += await topics.find(names, ids)
    rows += await topics.delete()
    # Not in the order of the request: that would reveal which topics exist that a client may not describe.
    return {"responses": sorted(rows, key=lambda row: (row["name"] or "", row["topic_id"]))}


def topics_to_delete(call: KafkaCall) -> Sequence[Fields]:
    """The elements of a request: each a name, or from version 6 on an id."""
    if call.version < _BY_ID:
        return [{"name": name, "topic_id": ZERO_ID} for name in call.body["topic_names"]]
    requested: Sequence[Fields] = call.body["topics"]
    return requested


def no_topics_deleted(call: KafkaCall, error: RowError) -> Fields:
    """The answer to DeleteTopics that is refused."""
    return {
        "responses": [refused_topic(row["name"], row["topic_id"], error) for row in topics_to_delete(call)]
    }


def _sorted_out(requested: Sequence[Fields]) -> tuple[list[Fields], list[str], list[uuid.UUID]]:
    """The rows of wrong elements, and the remaining names and ids."""
    rows = []
    names: Counter[str] = Counter()
    ids: Counter[uuid.UUID] = Counter()
    for row in requested:
        name, topic_id = row["name"], row["topic_id"]
        if name is not None and topic_id != ZERO_ID:
            rows.append(_wrong(name, topic_id, "You may not specify both topic name and topic id."))
        elif name is not None:
            names[name] += 1
        elif topic_id != ZERO_ID:
            ids[topic_id] += 1
        else:
            rows.append(_wrong(None, ZERO_ID, "Neither topic name nor id were specified."))
    rows += [_wrong(name, ZERO_ID, "Duplicate topic name.") for name, count in names.items() if count > 1]
    rows += [_wrong(None, each, "Duplicate topic id.") for each, count in ids.items() if count > 1]
    return (
        rows,
        [name for name, count in names.items() if count == 1],
        [topic_id for topic_id, count in ids.items() if count == 1],
    )


class _Topics:
    """The topics of one request that may be deleted. ``refused_ids`` were given wrongly."""

    def __init__(self, call: KafkaCall, changes: TopicEditor, refused_ids: Container[uuid.UUID]) -> None:
        self._call = call
        self._changes = changes
        self._refused_ids = refused_ids
        authorizer = call.services.authorizer
        self._everything = authorizer.allows(call, Operation.DELETE, ResourceType.CLUSTER, CLUSTER_NAME)
        #: The found topics by id, each with its name, and whether the request gave the id itself.
        self._found: dict[uuid.UUID, tuple[str, bool]] = {}

    async def find(self, names: Sequence[str], ids: Sequence[uuid.UUID]) -> list[Fields]:
        """Find the topics that may be deleted; returns the rows of the others."""
        call, topics = self._call, self._call.services.named
        operation, right = None if self._everything else Operation.DESCRIBE, right_to("delete_topic")
        found = await topics.by_name(call, names, operation=operation, rules=right)
        named = {row.name: row for row in found}
        by_id = await topics.by_id(call, ids, operation=None, rules=right)
        known = [row.name for row in (*named.values(), *by_id) if row.name is not None and not row.error]
        denied = await self._denied(known)
        return [*self._of_ids(by_id, denied), *self._of_names(named, denied)]

    async def _denied(self, names: Iterable[str]) -> Mapping[str, RowError]:
        """The errors of topics that the client may not delete."""
        call = self._call
        authorizer = call.services.authorizer
        names = list(dict.fromkeys(names))
        denied = {
            name: error_row(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            for name in names
            if not self._everything
            and not authorizer.allows(call, Operation.DELETE, ResourceType.TOPIC, name)
        }
        return denied | await call.denied([name for name in names if name not in denied])

    def _describable(self, name: str) -> bool:
        return self._call.services.authorizer.allows(self._call, Operation.DESCRIBE, ResourceType.TOPIC, name)

    def _of_ids(self, found: Iterable[NamedTopic], denied: Mapping[str, RowError]) -> list[Fields]:
        rows = []
        for topic in found:
            if topic.error:
                rows.append(refused_topic(topic.name, topic.topic_id, _error(topic)))
                continue
            assert topic.name is not None
            if topic.name in denied:
                shown = topic.name if self._describable(topic.name) else None
                rows.append(refused_topic(shown, topic.topic_id, denied[topic.name]))
            else:
                self._found[topic.topic_id] = (topic.name, True)
        return rows

    def _of_names(
        self, found: Mapping[str | None, NamedTopic], denied: Mapping[str, RowError]
    ) -> list[Fields]:
        rows = []
        for name, topic in found.items():
            assert name is not None
            if topic.error:
                error = _error(topic)
                if error.code is ErrorCode.INVALID_TOPIC_EXCEPTION:
                    error = error_row(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                rows.append(refused_topic(name, ZERO_ID, error))
            elif name in denied:
                rows.append(refused_topic(name, ZERO_ID, denied[name]))
            elif topic.topic_id in self._found or topic.topic_id in self._refused_ids:
                self._found.pop(topic.topic_id, None)
                text = "The provided topic name maps to an ID that was already supplied."
                rows.append(_wrong(name, topic.topic_id, text))
            else:
                self._found[topic.topic_id] = (name, False)
        return rows

    async def delete(self) -> list[Fields]:
        """Delete the found topics; returns their rows."""
        call, edits = self._call, []
        for topic_id, (name, by_id) in self._found.items():
            topic = call.topic(name)
            edits.append(Edit(topic, deletion(topic), _is_still(topic_id) if by_id else None))
        done = await self._changes.change(call.attempt, edits, call.change_deadline)
        rows = []
        for (topic_id, (name, by_id)), each in zip(self._found.items(), done, strict=True):
            if isinstance(each, TopicWrite):
                assert each.before is not None
                rows.append({"name": name, "topic_id": each.before.topic_id})
            elif by_id and isinstance(each, TopicMissing | ChangeRefused):
                rows.append(refused_topic(None, topic_id, error_row(ErrorCode.UNKNOWN_TOPIC_ID)))
            else:
                rows.append(refused_topic(name, ZERO_ID, error_of(each)))
        return rows


def _is_still(topic_id: uuid.UUID) -> Callable[[TopicRecord | None], None]:
    """A check within the transaction that the name is still that of the found topic."""

    def check(record: TopicRecord | None) -> None:
        if record is None or record.topic_id != topic_id:
            raise ChangeRefused(error_row(ErrorCode.UNKNOWN_TOPIC_ID))

    return check


def _error(topic: NamedTopic) -> RowError:
    return RowError(topic.error, topic.message or MESSAGES.get(topic.error))


def _wrong(name: str | None, topic_id: uuid.UUID, text: str) -> Fields:
    return refused_topic(name, topic_id, RowError(ErrorCode.INVALID_REQUEST, text))


def refused_topic(name: str | None, topic_id: uuid.UUID, error: RowError) -> Fields:
    """The row of a topic that is not deleted."""
    return {"name": name, "topic_id": topic_id} | error.fields


def deleted_topics(call: KafkaCall, fields: Fields) -> Iterator[AuditRow]:
    """The results of the topics; a topic that the client may only know by its id is named by that."""
    before = call.full_name("")
    for row in fields["responses"]:
        name, topic_id = row["name"], row["topic_id"]
        numbers = {"topic_id": topic_id_text(topic_id) if topic_id.int else None}
        yield row_of("" if name is None else before + name, row.get("error_code", 0), numbers)


DELETE_TOPICS_ROW: Final = HandlerRow(
    DELETE_TOPICS, partial(audited, "delete_topic", _delete, deleted_topics, no_topics_deleted)
)
