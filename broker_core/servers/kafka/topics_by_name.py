"""Topics that a client names, by name or by id: what there is of them, and what the client may know of it."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

import pyarrow as pa

from broker_core.access.access import Access
from broker_core.catalog import CatalogError, SqliteCatalog, TopicRecord
from broker_core.errors import Cause, ListingFailed
from broker_core.kafka.acls.bindings import Operation, ResourceType
from broker_core.kafka.topic_names import INTERNAL, is_legal
from broker_core.names import PERSISTENT, TopicName
from broker_core.pipeline import Pipeline, Topic
from broker_core.servers.kafka.authorizer import Authorizer
from broker_core.servers.kafka.caller import Caller
from broker_core.servers.kafka.named_topic import NamedTopic, code_of
from broker_core.servers.kafka.visible_topics import VisibleTopics
from broker_core.wire.kafka import ErrorCode

__all__ = ["TopicsByName"]

#: Partitions of a topic whose names are made one by one.
_FEW: Final = 1000


class TopicsByName:
    """``listed`` gives all topics of a namespace, where others than the catalogue have a say about what there is."""

    def __init__(
        self,
        pipeline: Pipeline,
        authorizer: Authorizer,
        catalog: SqliteCatalog | None,
        listed: Callable[[Caller], Awaitable[VisibleTopics]],
    ) -> None:
        self._pipeline = pipeline
        self._authorizer = authorizer
        self._catalog = catalog
        self._listed = listed

    async def named(self, caller: Caller, names: Sequence[str]) -> list[NamedTopic]:
        """In the order of the names. A failure is the code of each."""
        answers: dict[str, NamedTopic] = {}
        asked: list[str] = []
        for name in dict.fromkeys(names):
            if not self._describable(caller, name):
                answers[name] = _row(name, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            elif not is_legal(name):
                answers[name] = _row(name, ErrorCode.INVALID_TOPIC_EXCEPTION)
            else:
                asked.append(name)
        if asked:
            answers |= await self._found(caller, asked)
        return [answers[name] for name in names]

    async def by_ids(self, caller: Caller, ids: Sequence[uuid.UUID]) -> list[NamedTopic]:
        """In the order of the ids. What is not there, hidden or of another namespace is 100, before ACLs."""
        try:
            known = await self._names_of(caller, list(dict.fromkeys(ids)))
        except ListingFailed as failure:
            return [_failed(None, failure, topic_id) for topic_id in ids]
        found = {row.name: row for row in await self.named(caller, list(known.values()))}
        answers = []
        for topic_id in ids:
            name = known.get(topic_id)
            row = None if name is None else found[name]
            if row is None or row.error in _NONE or (not row.error and row.topic_id != topic_id):
                row = NamedTopic(None, topic_id, error=ErrorCode.UNKNOWN_TOPIC_ID)
            elif row.error:
                row = replace(row, name=None, topic_id=topic_id)
            answers.append(row)
        return answers

    # -- what there is

    async def _found(self, caller: Caller, names: Sequence[str]) -> Mapping[str, NamedTopic]:
        """Topics with legal names that ACLs allow to be described."""
        answers: dict[str, NamedTopic] = {}
        try:
            visible = await self._of_others(caller)
            records = await self._records(caller, names) if visible is None else {}
        except ListingFailed as failure:
            return {name: _failed(name, failure) for name in names}
        for name in names:
            try:
                if visible is not None:
                    await self._authorize(caller, name)
                    answers[name] = _of_table(visible, name)
                else:
                    answers[name] = await self._of_record(caller, name, records.get(name))
            except ListingFailed as failure:
                answers[name] = _failed(name, failure)
        return answers

    async def _of_others(self, caller: Caller) -> VisibleTopics | None:
        """All topics, where others than the catalogue list them."""
        if self._catalog is None or self._pipeline.dispatcher.lists(caller.namespace):
            return await self._listed(caller)
        return None

    async def _of_record(self, caller: Caller, name: str, record: TopicRecord | None) -> NamedTopic:
        topic = await self._authorize(caller, name)
        if record is None or not await self._pipeline.topics_by_name.is_visible(
            topic, caller.asker, _known(record)
        ):
            return _row(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return NamedTopic(name, record.topic_id, max(record.partitions, 1), name in INTERNAL, record=record)

    async def _authorize(self, caller: Caller, name: str) -> TopicName:
        """Ask the rules and the gates about one topic."""
        topic = TopicName(PERSISTENT, caller.namespace, name)
        if self._pipeline.has_guards:
            access = Access("describe", caller.namespace, topic, caller.asker)
            await self._pipeline.authorize(access, caller.deadline)
        return topic

    def _describable(self, caller: Caller, name: str) -> bool:
        return self._authorizer.allows(caller, Operation.DESCRIBE, ResourceType.TOPIC, name)

    # -- the catalogue

    async def _records(self, caller: Caller, names: Sequence[str]) -> Mapping[str, TopicRecord]:
        assert self._catalog is not None
        topics = [TopicName(PERSISTENT, caller.namespace, name) for name in names]
        shown = [topic for topic in topics if topic.partition < 0 and not topic.is_system]
        try:
            records = await asyncio.to_thread(self._read, shown)
        except CatalogError as error:
            raise _unreadable(error) from error
        return {record.name.local: record for record in records}

    def _read(self, topics: Sequence[TopicName]) -> list[TopicRecord]:
        assert self._catalog is not None
        found = (self._catalog.topic(topic) for topic in topics)
        return [record for record in found if record is not None]

    async def _names_of(self, caller: Caller, ids: Sequence[uuid.UUID]) -> Mapping[uuid.UUID, str]:
        """The names in the caller's namespace that topics with these ids have."""
        visible = await self._of_others(caller)
        if visible is not None:
            return _names_in(visible, ids)
        try:
            return await asyncio.to_thread(self._names_by_id, caller, ids)
        except CatalogError as error:
            raise _unreadable(error) from error

    def _names_by_id(self, caller: Caller, ids: Sequence[uuid.UUID]) -> Mapping[uuid.UUID, str]:
        assert self._catalog is not None
        names = {}
        for topic_id in ids:
            record = self._catalog.topic_by_id(topic_id)
            if record is None or record.name.domain != PERSISTENT:
                continue
            if record.name.namespace == caller.namespace:
                names[topic_id] = record.name.local
        return names


#: The codes of a topic that is not there for the client.
_NONE: Final = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION})


def _known(record: TopicRecord) -> Topic:
    """The names that a topic is listed by, for masks."""
    listed = record.listed
    if len(listed) > _FEW:
        return Topic(record.partitions)
    return Topic(record.partitions, names=pa.array(list(record.names), pa.large_string()))


def _of_table(visible: VisibleTopics, name: str) -> NamedTopic:
    row = visible.row(name)
    if row is None:
        return _row(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return NamedTopic(name, uuid.UUID(bytes=row.topic_id), row.partitions, row.internal)


def _names_in(visible: VisibleTopics, ids: Sequence[uuid.UUID]) -> Mapping[uuid.UUID, str]:
    asked = pa.array([topic_id.bytes for topic_id in ids], pa.large_binary())
    names = {}
    for chunk in visible.table.chunks:
        if chunk.ids is not None:
            rows = pa.compute.index_in(asked, value_set=chunk.ids)
            for topic_id, row in zip(ids, rows.to_pylist(), strict=True):
                if row is not None and topic_id.int:
                    names[topic_id] = chunk.name(row).decode()
    return names


def _row(name: str, error: ErrorCode) -> NamedTopic:
    return NamedTopic(name, internal=name in INTERNAL, error=error)


def _failed(name: str | None, failure: ListingFailed, topic_id: uuid.UUID | None = None) -> NamedTopic:
    denied = failure.cause is Cause.DENIED
    error = ErrorCode.TOPIC_AUTHORIZATION_FAILED if denied else code_of(failure)
    row = NamedTopic(name, internal=name in INTERNAL, error=error, message=failure.message)
    return row if topic_id is None else replace(row, topic_id=topic_id)


def _unreadable(error: CatalogError) -> ListingFailed:
    return ListingFailed(f"Cannot read the catalogue: {error}", cause=Cause.CATALOG, reason="catalog")
