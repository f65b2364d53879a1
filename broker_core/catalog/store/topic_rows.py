"""Rows of topics of the catalogue: reading, writing and editing them.

Edits within one transaction are applied as decided, or refused one by one.
"""

from __future__ import annotations

import sqlite3
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from broker_core.catalog.catalog_errors import CatalogError, NameCollides
from broker_core.catalog.store.change_log_writer import LoggedTexts, NamespaceChange
from broker_core.catalog.store.log_rows import when
from broker_core.catalog.store.taken_names import taken_names
from broker_core.catalog.topic_decisions import Decide, has_name
from broker_core.catalog.topic_record import TopicRecord, configs_text, properties_of, properties_text
from broker_core.change_log import Operation
from broker_core.compact_json import compact_json
from broker_core.names import DOMAINS, PARTITION_SUFFIX, ListedNames, NamespaceName, TopicName

__all__ = [
    "Edit",
    "Require",
    "TopicWriter",
    "edit_each",
    "found_topics",
    "listed_topic",
    "named_topic",
    "own_topic",
    "own_topics",
    "topic_of_id",
    "topics_of",
]


#: Topics that are read one by one.
_FEW = 8
_COLUMNS = "listed, topic_id, properties, created, configs, replication"
_TOPIC = (
    f"SELECT {_COLUMNS} FROM topics"  # noqa: S608 - a constant
    " WHERE namespace = (SELECT id FROM namespaces WHERE name = ?) AND domain = ? AND base = ?"
)
_NAMED = (
    f"SELECT base, {_COLUMNS} FROM topics"  # noqa: S608 - a constant
    " WHERE namespace = (SELECT id FROM namespaces WHERE name = ?) AND domain = ?"
    " AND base IN (SELECT value FROM json_each(?))"
)
_ALL = (
    f"SELECT domain, base, {_COLUMNS} FROM topics"  # noqa: S608 - a constant
    " WHERE namespace = (SELECT id FROM namespaces WHERE name = ?) ORDER BY domain, base"
)
_BY_ID = (
    f"SELECT n.name, domain, base, {_COLUMNS} FROM topics t JOIN namespaces n ON n.id = t.namespace"  # noqa: S608
    " WHERE t.topic_id = ?"
)
_INSERT = "INSERT INTO topics VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
_UPDATE = (
    "UPDATE topics SET listed = ?, properties = ?, configs = ?, replication = ?"
    " WHERE namespace = ? AND domain = ? AND base = ?"
)
_DELETE = "DELETE FROM topics WHERE namespace = ? AND domain = ? AND base = ?"


def own_topic(connection: sqlite3.Connection, name: TopicName) -> TopicRecord | None:
    """The topic with the given own name (without partition suffix)."""
    row = connection.execute(_TOPIC, (str(name.namespace), DOMAINS.index(name.domain), name.local)).fetchone()
    return None if row is None else _record(name, *row)


def own_topics(
    connection: sqlite3.Connection, namespace: NamespaceName, names: Iterable[TopicName]
) -> dict[tuple[str, str], TopicRecord | None]:
    """Topics of a namespace by their own names, many at once; the keys are their domains and local names."""
    requested = {(name.domain, name.local): name for name in names}
    found: dict[tuple[str, str], TopicRecord | None] = dict.fromkeys(requested)
    for domain in DOMAINS:
        bases = [local for own, local in found if own == domain]
        if bases:
            rows = connection.execute(_NAMED, (str(namespace), DOMAINS.index(domain), compact_json(bases)))
            for base, *rest in rows:
                found[domain, base] = _record(requested[domain, base], *rest)
    return found


def topics_of(connection: sqlite3.Connection, namespace: NamespaceName) -> Iterator[TopicRecord]:
    """All topics of a namespace, read one by one."""
    rows = connection.execute(_ALL, (str(namespace),))
    return (_record(TopicName(DOMAINS[domain], namespace, base), *rest) for domain, base, *rest in rows)


def listed_topic(connection: sqlite3.Connection, name: TopicName) -> TopicRecord | None:
    """The topic that is listed by exactly this name."""
    base, index = TopicName.split_local(name.local)
    record = own_topic(connection, TopicName(name.domain, name.namespace, base))
    return record if record is not None and index in record.listed else None


def named_topic(connection: sqlite3.Connection, name: TopicName) -> TopicRecord | None:
    """The topic that is listed by this name, or else whose own name it is."""
    if name.partition < 0:
        return own_topic(connection, name)
    return listed_topic(connection, name) or own_topic(connection, name)


def found_topics(
    connection: sqlite3.Connection, names: Sequence[TopicName]
) -> list[tuple[TopicRecord | None, int]]:
    """For each name of a namespace its topic, and how many partitions exactly this name has (a partition: 0)."""
    own = own_topics(connection, names[0].namespace, names) if len(names) > _FEW else None
    found = []
    for name in names:
        record = own_topic(connection, name) if own is None else own[name.domain, name.local]
        partitions = 0 if record is None else record.partitions
        if PARTITION_SUFFIX in name.local and name.partition >= 0:
            record = listed_topic(connection, name) or record
        found.append((record, partitions))
    return found


def topic_of_id(connection: sqlite3.Connection, topic_id: uuid.UUID) -> TopicRecord | None:
    """The topic that has this id, in whatever namespace."""
    row = connection.execute(_BY_ID, (topic_id.bytes,)).fetchone()
    if row is None:
        return None
    namespace, domain, base, *rest = row
    return _record(TopicName(DOMAINS[domain], NamespaceName.parse(namespace), base), *rest)


def _record(
    name: TopicName,
    listed: str,
    topic_id: bytes,
    properties: str | None,
    created: int,
    configs: str | None,
    replication: int | None,
) -> TopicRecord:
    """The topic of a row."""
    return TopicRecord(
        name,
        uuid.UUID(bytes=topic_id),
        ListedNames.parse(listed),
        properties_of(properties),
        when(created),
        properties_of(configs),
        replication,
    )


class TopicWriter:
    """Writes topics in their new state, within the transaction of ``change``, and logs the changes.

    Rows of one kind are written in one go, by :meth:`flush` at the latest, which has to be called before rows are read.
    """

    def __init__(self, connection: sqlite3.Connection, change: NamespaceChange) -> None:
        self._connection = connection
        self.change = change
        self._created = when(change.time)
        self._statement = ""
        self._rows: list[tuple[object, ...]] = []

    def write(self, before: TopicRecord | None, after: TopicRecord | None) -> TopicRecord | None:
        """Bring a topic from ``before``, its current state, to ``after``.

        ``None`` is no topic; a topic with another id replaces the one before. A new topic is created at the time of the
        change: the record is returned as it will be read. If nothing changes, nothing is written.
        """
        if before is not None and after is not None and after.topic_id != before.topic_id:
            self.write(before, None)
            before = None
        if after is not None and before is None:
            after = TopicRecord(
                after.name,
                after.topic_id,
                after.listed,
                after.properties,
                self._created,
                after.configs,
                after.replication,
            )
            key, topic_id, texts = self._key(after), after.topic_id.bytes, _texts(after)
            listed, properties, configs = texts
            row = (*key, listed, topic_id, properties, self.change.time, configs, after.replication)
            self._put(_INSERT, row)
            self.change.log(Operation.CREATE, key[1:], topic_id, None, texts)
        elif after is None and before is not None:
            key = self._key(before)
            self._put(_DELETE, key)
            self.change.log(Operation.DELETE, key[1:], before.topic_id.bytes, _texts(before), None)
        elif before is not None and after is not None and after != before:
            key, texts = self._key(after), _texts(after)
            self._put(_UPDATE, (*texts, after.replication, *key))
            self.change.log(Operation.UPDATE, key[1:], after.topic_id.bytes, _texts(before), texts)
        return after

    def flush(self) -> None:
        """Write the rows that are not written yet."""
        if self._rows:
            self._connection.executemany(self._statement, self._rows)
            self._rows = []
        self.change.flush()

    def _put(self, statement: str, row: tuple[object, ...]) -> None:
        if statement != self._statement:
            self.flush()
            self._statement = statement
        self._rows.append(row)

    def _key(self, topic: TopicRecord) -> tuple[int, int, str]:
        return self.change.id, DOMAINS.index(topic.name.domain), topic.name.local


def _texts(topic: TopicRecord) -> LoggedTexts:
    return str(topic.listed), properties_text(topic.properties), configs_text(topic.configs)


#: From so many edits on, their topics are read together.
_TOGETHER: Final = 8
#: Called with the topic of a name, or ``None``, before it is changed; an exception refuses the edit.
Require = Callable[[TopicRecord | None], object]


class Edit(NamedTuple):
    """An edit of the topic of a name (:mod:`broker_core.catalog.topic_decisions`).

    ``distinct``: the name is refused if it collides with another topic's, as in Kafka. Topics of the same
    transaction may collide.
    """

    topic: TopicName
    decide: Decide
    require: Require | None = None
    distinct: bool = False


def edit_each(
    connection: sqlite3.Connection, change: NamespaceChange, edits: Sequence[Edit]
) -> list[tuple[TopicRecord | None, TopicRecord | None] | CatalogError]:
    """Do edits within the transaction of ``change``, in their order, each on the result of those before it.

    Returns the topic before and after each; for a refused one, of which nothing is written, the error.
    """
    writer = TopicWriter(connection, change)
    known: dict[tuple[str, str], TopicRecord | None] = {}
    if len(edits) >= _TOGETHER:
        plain = [edit.topic for edit in edits if edit.topic.partition < 0]
        known = own_topics(connection, change.namespace, plain)
    marked = [
        name.local for name, _, _, distinct in edits if distinct and ("." in name.local or "_" in name.local)
    ]
    taken = taken_names(connection, change.namespace, marked) if marked else {}
    done: list[tuple[TopicRecord | None, TopicRecord | None] | CatalogError] = []
    for name, decide, require, distinct in edits:
        key = (name.domain, name.local)
        try:
            if distinct and (other := taken.get(name.local, name.local)) != name.local:
                raise NameCollides(name.local, other)
            if key in known:
                before = known[key]
            else:
                writer.flush()
                before = _found(connection, name)
            if require is not None:
                require(before if before is not None and has_name(before, name) else None)
            after = writer.write(before, decide(before))
            done.append((before, after))
        except CatalogError as error:
            done.append(error)
            continue
        if known and (some := after or before) is not None:
            known[some.name.domain, some.name.local] = after
    writer.flush()
    return done


def _found(connection: sqlite3.Connection, name: TopicName) -> TopicRecord | None:
    """The topic of a name; for a missing partition the topic that would have it."""
    before = named_topic(connection, name)
    if before is None and name.partition >= 0:
        before = own_topic(connection, name.partitioned_name)
    return before
