"""Topics that a client names, by name or by id: what there is of them, and what the client may know of it."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, ParamSpec, Protocol

import pyarrow as pa

from broker_core.access.access import Access
from broker_core.catalog import SqliteCatalog, TopicRecord, reading_catalog
from broker_core.concurrency.loop_turn import loop_turn
from broker_core.errors import ListingFailed
from broker_core.kafka.acls.bindings import Operation, ResourceType
from broker_core.kafka.topic_names import INTERNAL, is_legal
from broker_core.names import PERSISTENT, TopicName
from broker_core.pipeline import Pipeline, Topic
from broker_core.servers.kafka.authorizer import Authorizer
from broker_core.servers.kafka.caller import Caller
from broker_core.servers.kafka.large_requests import SLICE
from broker_core.servers.kafka.named_topic import NamedTopic
from broker_core.servers.kafka.row_error import code_of
from broker_core.servers.kafka.visible_topics import VisibleTopics
from broker_core.wire.kafka import ErrorCode

__all__ = ["TopicRecords", "TopicsByName"]

P = ParamSpec("P")

_DENIED: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED

#: Partitions of a topic whose names are made one by one.
_FEW: Final = 1000


#: Topics that are looked for at a time: what a thread reads before others have their turn.
_READ: Final = 500
#: Topics that are read on the event loop: each takes some 20 microseconds.
_AT_ONCE: Final = 8


class TopicRecords(Protocol):
    """Where records of the catalogue are read without waiting; ``None`` where that cannot be."""

    def by_name_now(self, names: Sequence[TopicName]) -> list[TopicRecord | None] | None: ...

    def by_id_now(self, ids: Sequence[uuid.UUID]) -> list[TopicRecord | None] | None: ...


class _Once:
    """All topics, where others than the catalogue list them (else ``None``): asked for once in a request."""

    def __init__(self, ask: Callable[[Caller], Awaitable[VisibleTopics | None]], caller: Caller) -> None:
        self._ask = ask
        self._caller = caller
        self._is_known = False
        self._visible: VisibleTopics | None = None
        self._failure: ListingFailed | None = None

    async def get(self) -> VisibleTopics | None:
        """Raises :exc:`~broker_core.errors.ListingFailed`, each time."""
        if self._failure is not None:
            raise self._failure.with_traceback(None)
        if not self._is_known:
            try:
                self._visible = await self._ask(self._caller)
            except ListingFailed as failure:
                self._failure = failure
                raise
            self._is_known = True
        return self._visible


class TopicsByName:
    """``listed`` gives all topics of a namespace, where others than the catalogue have a say about what there is."""

    def __init__(
        self,
        pipeline: Pipeline,
        authorizer: Authorizer,
        catalog: SqliteCatalog | None,
        tables: TopicRecords | None,
        listed: Callable[[Caller], Awaitable[VisibleTopics]],
    ) -> None:
        self._pipeline = pipeline
        self._authorizer = authorizer
        self._catalog = catalog
        self._tables = tables
        self._listed = listed

    def now(self, caller: Caller, names: Sequence[str], ids: Sequence[uuid.UUID]) -> list[NamedTopic] | None:
        """What :meth:`named`, or :meth:`by_ids` where there are ids, says of a few that nobody else is asked about.

        ``None`` where that takes waiting.
        """
        if (
            self._tables is None
            or len(names) + len(ids) > _AT_ONCE
            or self._pipeline.has_guards
            or self._pipeline.dispatcher.lists(caller.namespace)
            or self._masks(caller)
            or not loop_turn().has_time()
        ):
            return None
        return self._by_ids_now(caller, ids) if ids else self._named_now(caller, names)

    def _named_now(self, caller: Caller, names: Sequence[str]) -> list[NamedTopic] | None:
        errors = {name: error for name in names if (error := self._unasked(caller, Operation.DESCRIBE, name))}
        found = self._by_name_now(caller, [name for name in names if name not in errors])
        if found is None:
            return None
        records = _by_local_name(found)
        return [
            _row(name, errors[name]) if name in errors else _of_record(name, records.get(name))
            for name in names
        ]

    def _by_ids_now(self, caller: Caller, ids: Sequence[uuid.UUID]) -> list[NamedTopic] | None:
        assert self._tables is not None
        found = self._tables.by_id_now(ids)
        if found is None:
            return None
        records = _by_own_id(caller, found)
        rows = []
        for topic_id in ids:
            record = records.get(topic_id)
            row = None
            if record is not None:
                name = record.name.local
                allowed = self._allowed(caller, Operation.DESCRIBE, name)
                row = _of_record(name, record) if allowed else _row(name, _DENIED)
            rows.append(_by_id(topic_id, row))
        return rows

    async def named(
        self,
        caller: Caller,
        names: Sequence[str],
        *,
        operation: Operation | None = Operation.DESCRIBE,
        action: str = "describe",
    ) -> list[NamedTopic]:
        """In the order of the names. A failure is the code of each.

        ACLs have to allow ``operation``, ``None``: none are asked; rules and gates the ``action``.
        """
        rows: list[NamedTopic] = []
        listed = _Once(self._of_others, caller)
        for low in range(0, len(names), _READ):
            some = names[low : low + _READ]
            answers: dict[str, NamedTopic] = {}
            asked: list[str] = []
            await loop_turn().time()
            for number, name in enumerate(dict.fromkeys(some)):
                if number and not number % SLICE:
                    await loop_turn().time()
                error = self._unasked(caller, operation, name)
                if error is None:
                    asked.append(name)
                else:
                    answers[name] = _row(name, error)
            if asked:
                answers |= await self._found(caller, asked, action, listed)
            rows += [answers[name] for name in some]
        return rows

    async def by_ids(
        self,
        caller: Caller,
        ids: Sequence[uuid.UUID],
        *,
        operation: Operation | None = Operation.DESCRIBE,
        action: str = "describe",
    ) -> list[NamedTopic]:
        """In the order of the ids. What is not there, hidden or of another namespace is 100, before ACLs."""
        rows: list[NamedTopic] = []
        listed = _Once(self._of_others, caller)
        listed_names: Mapping[uuid.UUID, str] | None = None
        for low in range(0, len(ids), _READ):
            some = ids[low : low + _READ]
            unique = list(dict.fromkeys(some))
            records: Mapping[uuid.UUID, TopicRecord] = {}
            try:
                visible = await listed.get()
                if visible is None:
                    records = await self._records_by_id(caller, unique)
                elif listed_names is None:
                    listed_names = await asyncio.to_thread(_names_in, visible, list(dict.fromkeys(ids)))
            except ListingFailed as failure:
                rows += [_failed(None, failure, topic_id) for topic_id in some]
                continue
            found = {}
            for number, topic_id in enumerate(unique):
                if not number % SLICE:
                    await loop_turn().time()
                record = records.get(topic_id)
                name = (listed_names or {}).get(topic_id) if record is None else record.name.local
                if name is not None:
                    found[topic_id] = await self._identified(caller, name, operation, action, visible, record)
            rows += [_by_id(topic_id, found.get(topic_id)) for topic_id in some]
        return rows

    # -- what there is

    async def _found(
        self, caller: Caller, names: Sequence[str], action: str, listed: _Once
    ) -> Mapping[str, NamedTopic]:
        """Topics with legal names that ACLs allow to be described."""
        found: dict[str, NamedTopic] = {}
        try:
            visible = await listed.get()
            records = {} if visible is not None else await self._records_by_name(caller, names)
            plain = visible is None and not self._pipeline.has_guards and not self._masks(caller)
            for number, name in enumerate(names):
                if not number % SLICE:
                    await loop_turn().time()
                record = records.get(name)
                found[name] = (
                    _of_record(name, record)
                    if plain
                    else await self._known(caller, name, action, visible, record)
                )
        except ListingFailed as failure:
            return {name: _failed(name, failure) for name in names}
        return found

    async def _known(
        self,
        caller: Caller,
        name: str,
        action: str,
        visible: VisibleTopics | None,
        record: TopicRecord | None,
    ) -> NamedTopic:
        """One topic by its name, of what others list or of the catalogue."""
        try:
            await self._authorize(caller, name, action)
            return await self._shown(caller, name, visible, record)
        except ListingFailed as failure:
            return _failed(name, failure)

    async def _identified(
        self,
        caller: Caller,
        name: str,
        operation: Operation | None,
        action: str,
        visible: VisibleTopics | None,
        record: TopicRecord | None,
    ) -> NamedTopic:
        """The same by its id: masks come first, since a refusal would tell that the id of a hidden topic is there."""
        try:
            topic = await self._shown(caller, name, visible, record)
            if not topic.error and not self._allowed(caller, operation, name):
                return _row(name, _DENIED)
            if not topic.error:
                await self._authorize(caller, name, action)
        except ListingFailed as failure:
            return _failed(name, failure)
        return topic

    async def _shown(
        self, caller: Caller, name: str, visible: VisibleTopics | None, record: TopicRecord | None
    ) -> NamedTopic:
        """What masks leave of a topic. Raises :exc:`~broker_core.errors.ListingFailed`."""
        if visible is not None:
            return _of_table(visible, name)
        if (
            record is not None
            and self._masks(caller)
            and not await self._pipeline.topics_by_name.is_visible(record.name, caller.asker, _listed(record))
        ):
            record = None
        return _of_record(name, record)

    def _masks(self, caller: Caller) -> bool:
        """Whether a plugin may hide topics."""
        return self._pipeline.dispatcher.masks(caller.namespace)

    async def _of_others(self, caller: Caller) -> VisibleTopics | None:
        """All topics, where others than the catalogue list them."""
        if self._catalog is None or self._pipeline.dispatcher.lists(caller.namespace):
            return await self._listed(caller)
        return None

    async def _authorize(self, caller: Caller, name: str, action: str) -> None:
        """Ask the rules and the gates about one topic."""
        if self._pipeline.has_guards:
            topic = TopicName(PERSISTENT, caller.namespace, name)
            access = Access(action, caller.namespace, topic, caller.asker)
            await self._pipeline.authorize(access, caller.deadline)

    def _allowed(self, caller: Caller, operation: Operation | None, name: str) -> bool:
        return operation is None or self._authorizer.allows(caller, operation, ResourceType.TOPIC, name)

    def _unasked(self, caller: Caller, operation: Operation | None, name: str) -> ErrorCode | None:
        """The error of a name that is not looked for."""
        if not self._allowed(caller, operation, name):
            return _DENIED
        return None if is_legal(name) else ErrorCode.INVALID_TOPIC_EXCEPTION

    # -- the catalogue

    async def _records_by_name(self, caller: Caller, names: Sequence[str]) -> Mapping[str, TopicRecord]:
        found = self._by_name_now(caller, names)
        if found is None:
            assert self._catalog is not None
            found = await _in_thread(self._catalog.own_topics, caller.namespace, _listed_ones(caller, names))
        return _by_local_name(found)

    def _by_name_now(self, caller: Caller, names: Sequence[str]) -> list[TopicRecord | None] | None:
        """A few of them; ``None`` where they are many, or the file cannot be read at once."""
        if self._tables is None or len(names) > _AT_ONCE:
            return None
        return self._tables.by_name_now(_listed_ones(caller, names))

    async def _records_by_id(
        self, caller: Caller, ids: Sequence[uuid.UUID]
    ) -> Mapping[uuid.UUID, TopicRecord]:
        """The topics of the caller's namespace that Kafka can have."""
        found = None
        if self._tables is not None and len(ids) <= _AT_ONCE:
            found = self._tables.by_id_now(ids)
        if found is None:
            assert self._catalog is not None
            found = await _in_thread(self._catalog.topics_by_id, ids)
        return _by_own_id(caller, found)


def _listed_ones(caller: Caller, names: Sequence[str]) -> list[TopicName]:
    """The topics of these names, without those that no listing has."""
    topics = [TopicName(PERSISTENT, caller.namespace, name) for name in names]
    return [topic for topic in topics if topic.partition < 0 and not topic.is_system]


def _by_local_name(records: Sequence[TopicRecord | None]) -> Mapping[str, TopicRecord]:
    return {record.name.local: record for record in records if record is not None}


def _by_own_id(caller: Caller, records: Sequence[TopicRecord | None]) -> Mapping[uuid.UUID, TopicRecord]:
    """Those of the caller's namespace that Kafka can have."""
    return {
        record.topic_id: record
        for record in records
        if record is not None
        and (record.name.domain, record.name.namespace) == (PERSISTENT, caller.namespace)
        and not record.name.is_system
        and is_legal(record.name.local)
    }


async def _in_thread(
    read: Callable[P, list[TopicRecord | None]], *args: P.args, **kwargs: P.kwargs
) -> list[TopicRecord | None]:
    with reading_catalog():
        return await asyncio.to_thread(read, *args, **kwargs)


def _listed(record: TopicRecord) -> Topic:
    """The names that a topic is listed by, for masks."""
    listed = record.listed
    if len(listed) > _FEW:
        return Topic(record.partitions)
    return Topic(record.partitions, names=pa.array(list(record.names), pa.large_string()))


def _of_record(name: str, record: TopicRecord | None) -> NamedTopic:
    if record is None:
        return _row(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return NamedTopic(name, record.topic_id, max(record.partitions, 1), name in INTERNAL, record=record)


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


def _by_id(topic_id: uuid.UUID, row: NamedTopic | None) -> NamedTopic:
    """What is answered about an id: without the name where that may not be known."""
    if row is None or row.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return NamedTopic(None, topic_id, error=ErrorCode.UNKNOWN_TOPIC_ID)
    return row._replace(name=None, topic_id=topic_id) if row.error else row


def _row(name: str, error: ErrorCode) -> NamedTopic:
    return NamedTopic(name, internal=name in INTERNAL, error=error)


def _failed(name: str | None, failure: ListingFailed, topic_id: uuid.UUID | None = None) -> NamedTopic:
    row = NamedTopic(name, internal=name in INTERNAL, error=code_of(failure), message=failure.message)
    return row if topic_id is None else row._replace(topic_id=topic_id)
