"""One topic's row of the catalogue: reading it, and bringing it to what it is to be."""

from __future__ import annotations

import json
import sqlite3
import uuid
from collections.abc import Iterable

from broker_core.catalog.properties import configs_text, properties_of, properties_text
from broker_core.catalog.store.namespace_change import NamespaceChange, when
from broker_core.catalog.topic_record import TopicRecord
from broker_core.change_log import Operation
from broker_core.names import DOMAINS, NamespaceName, TopicName
from broker_core.names.listed_names import ListedNames

__all__ = [
    "listed_topic",
    "make_record",
    "named_topic",
    "own_topic",
    "own_topics",
    "topic_of_id",
    "write_topic",
]

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
_BY_ID = (
    f"SELECT n.name, domain, base, {_COLUMNS} FROM topics t JOIN namespaces n ON n.id = t.namespace"  # noqa: S608
    " WHERE t.topic_id = ?"
)


def own_topic(connection: sqlite3.Connection, name: TopicName) -> TopicRecord | None:
    """The topic whose own name (without partition suffix) this is."""
    row = connection.execute(_TOPIC, (str(name.namespace), DOMAINS.index(name.domain), name.local)).fetchone()
    return None if row is None else make_record(name, *row)


def own_topics(
    connection: sqlite3.Connection, namespace: NamespaceName, names: Iterable[TopicName]
) -> dict[TopicName, TopicRecord | None]:
    """The same for many names of a namespace."""
    found: dict[TopicName, TopicRecord | None] = dict.fromkeys(names)
    for domain in DOMAINS:
        bases = [name.local for name in found if name.domain == domain]
        if bases:
            rows = connection.execute(_NAMED, (str(namespace), DOMAINS.index(domain), json.dumps(bases)))
            for base, *rest in rows:
                name = TopicName(domain, namespace, base)
                found[name] = make_record(name, *rest)
    return found


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


def topic_of_id(connection: sqlite3.Connection, topic_id: uuid.UUID) -> TopicRecord | None:
    """The topic that has this id, in whatever namespace."""
    row = connection.execute(_BY_ID, (topic_id.bytes,)).fetchone()
    if row is None:
        return None
    namespace, domain, base, *rest = row
    return make_record(TopicName(DOMAINS[domain], NamespaceName.parse(namespace), base), *rest)


def make_record(
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


def write_topic(
    connection: sqlite3.Connection,
    change: NamespaceChange,
    before: TopicRecord | None,
    after: TopicRecord | None,
) -> TopicRecord | None:
    """Bring a topic from ``before``, as it is, to ``after``, within the transaction of ``change``, and log it.

    ``None`` is no topic; one of another id is another topic, which takes the place of the one before. A new topic is
    created at the time of the change: the record is returned as it was written. Nothing is written of what stays as it
    is.
    """
    if before is not None and after is not None and after.topic_id != before.topic_id:
        write_topic(connection, change, before, None)
        before = None
    if after is not None and before is None:
        after = TopicRecord(
            after.name,
            after.topic_id,
            after.listed,
            after.properties,
            when(change.time),
            after.configs,
            after.replication,
        )
        connection.execute(
            "INSERT INTO topics VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                *_key(change, after),
                str(after.listed),
                after.topic_id.bytes,
                properties_text(after.properties),
                change.time,
                configs_text(after.configs),
                after.replication,
            ),
        )
        change.log(Operation.CREATE, None, after)
    elif after is None and before is not None:
        connection.execute(
            "DELETE FROM topics WHERE namespace = ? AND domain = ? AND base = ?", _key(change, before)
        )
        change.log(Operation.DELETE, before, None)
    elif after is not None and after != before:
        connection.execute(
            "UPDATE topics SET listed = ?, properties = ?, configs = ?, replication = ?"
            " WHERE namespace = ? AND domain = ? AND base = ?",
            (
                str(after.listed),
                properties_text(after.properties),
                configs_text(after.configs),
                after.replication,
                *_key(change, after),
            ),
        )
        change.log(Operation.UPDATE, before, after)
    return after


def _key(change: NamespaceChange, topic: TopicRecord) -> tuple[int, int, str]:
    return change.id, DOMAINS.index(topic.name.domain), topic.name.local
