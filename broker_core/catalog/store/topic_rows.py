"""One topic's row of the catalogue: reading it, and bringing it to what it is to be."""

from __future__ import annotations

import sqlite3
import uuid

from broker_core.catalog.properties import properties_of, properties_text
from broker_core.catalog.store.namespace_change import NamespaceChange, when
from broker_core.catalog.topic_record import TopicRecord
from broker_core.change_log import Operation
from broker_core.names import DOMAINS, TopicName
from broker_core.names.listed_names import ListedNames

__all__ = ["listed_topic", "make_record", "named_topic", "own_topic", "write_topic"]

_TOPIC = (
    "SELECT listed, topic_id, properties, created FROM topics"
    " WHERE namespace = (SELECT id FROM namespaces WHERE name = ?) AND domain = ? AND base = ?"
)


def own_topic(connection: sqlite3.Connection, name: TopicName) -> TopicRecord | None:
    """The topic whose own name (without partition suffix) this is."""
    row = connection.execute(_TOPIC, (str(name.namespace), DOMAINS.index(name.domain), name.local)).fetchone()
    return None if row is None else make_record(name, *row)


def listed_topic(connection: sqlite3.Connection, name: TopicName) -> TopicRecord | None:
    """The topic that is listed by exactly this name."""
    base, index = TopicName.split_local(name.local)
    record = own_topic(connection, TopicName(name.domain, name.namespace, base))
    return record if record is not None and index in record.listed else None


def named_topic(connection: sqlite3.Connection, name: TopicName) -> TopicRecord | None:
    """The topic that is listed by this name, or else whose own name it is."""
    return listed_topic(connection, name) or own_topic(connection, name)


def make_record(
    name: TopicName, listed: str, topic_id: bytes, properties: str | None, created: int
) -> TopicRecord:
    """The topic of a row."""
    return TopicRecord(
        name, uuid.UUID(bytes=topic_id), ListedNames.parse(listed), properties_of(properties), when(created)
    )


def write_topic(
    connection: sqlite3.Connection,
    change: NamespaceChange,
    before: TopicRecord | None,
    after: TopicRecord | None,
) -> TopicRecord | None:
    """Bring a topic from ``before``, as it is, to ``after``, within the transaction of ``change``, and log it.

    ``None`` is no topic. A new topic is created at the time of the change: the record is returned as it was written.
    Nothing is written of what stays as it is.
    """
    if after is not None and before is None:
        after = TopicRecord(after.name, after.topic_id, after.listed, after.properties, when(change.time))
        connection.execute(
            "INSERT INTO topics VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                *_key(change, after),
                str(after.listed),
                after.topic_id.bytes,
                properties_text(after.properties),
                change.time,
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
            "UPDATE topics SET listed = ?, properties = ? WHERE namespace = ? AND domain = ? AND base = ?",
            (str(after.listed), properties_text(after.properties), *_key(change, after)),
        )
        change.log(Operation.UPDATE, before, after)
    return after


def _key(change: NamespaceChange, topic: TopicRecord) -> tuple[int, int, str]:
    return change.id, DOMAINS.index(topic.name.domain), topic.name.local
