from __future__ import annotations

import sqlite3
from dataclasses import replace
from datetime import UTC, datetime

from broker_core.catalog.store.change_log_writer import NamespaceChange
from broker_core.catalog.store.sqlite_catalog import SqliteCatalog
from broker_core.catalog.store.topic_rows import (
    TopicWriter,
    listed_topic,
    named_topic,
    own_topic,
)
from broker_core.catalog.topic_record import TopicRecord
from broker_core.change_log import CatalogVersion, Changes, Operation
from broker_core.names import TopicName
from broker_core.names.listed_names import ListedNames
from broker_core.names.topic_id import new_topic_id
from tests.support.narrowed import of_type, present


def new_record(name: TopicName, listed: ListedNames, properties: dict[str, str]) -> TopicRecord:
    return TopicRecord(name, new_topic_id(), listed, properties, datetime.fromtimestamp(0, UTC))


X = TopicName.parse("non-persistent://a/b/x")
PARTITION = TopicName.parse("non-persistent://a/b/x-partition-1")


def write_topic(
    connection: sqlite3.Connection,
    change: NamespaceChange,
    before: TopicRecord | None,
    after: TopicRecord | None,
) -> TopicRecord | None:
    writer = TopicWriter(connection, change)
    written = writer.write(before, after)
    writer.flush()
    return written


def test_a_topic_is_written_and_logged(catalog: SqliteCatalog) -> None:
    new = new_record(X, ListedNames.parse("0-1"), {"k": "v"})
    with catalog.changing(X.namespace) as (connection, change):
        made = present(write_topic(connection, change, None, new))
        assert made.created > new.created, "the time of the change"
        grown = write_topic(connection, change, made, replace(made, listed=ListedNames.parse("0-2")))
        assert write_topic(connection, change, grown, grown) is grown
        assert named_topic(connection, X) == grown
        assert write_topic(connection, change, grown, None) is None
        assert own_topic(connection, X) is None
        assert write_topic(connection, change, None, None) is None

    changes = of_type(catalog.changes(X.namespace, CatalogVersion(catalog.catalog_id, 0)), Changes)
    assert [(each.operation, str(each.listed_before), str(each.listed_after)) for each in changes] == [
        (Operation.CREATE, "", "0-1"),
        (Operation.UPDATE, "0-1", "0-2"),
        (Operation.DELETE, "0-2", ""),
    ]


def test_rows_of_several_kinds_are_written_and_logged_in_their_order(catalog: SqliteCatalog) -> None:
    names = [TopicName("persistent", X.namespace, local) for local in "cab"]
    with catalog.changing(X.namespace) as (connection, change):
        writer = TopicWriter(connection, change)
        c, a, b = [writer.write(None, new_record(name, ListedNames.of(-1), {})) for name in names]
        assert c is not None
        assert a is not None
        assert b is not None
        other = writer.write(a, new_record(a.name, ListedNames.of(-1), {"k": "v"}))
        grown = writer.write(c, replace(c, listed=ListedNames.parse("*,0")))
        writer.write(b, None)
        writer.flush()
        assert [own_topic(connection, name) for name in names] == [grown, other, None]

    changes = of_type(catalog.changes(X.namespace, CatalogVersion(catalog.catalog_id, 0)), Changes)
    assert [(each.operation.value, each.name.local) for each in changes] == [
        ("create", "c"),
        ("create", "a"),
        ("create", "b"),
        ("delete", "a"),
        ("create", "a"),
        ("update", "c"),
        ("delete", "b"),
    ]


def test_the_names_of_a_topic(catalog: SqliteCatalog) -> None:
    catalog.create(X, partitions=2)
    with catalog.reading() as connection:
        assert listed_topic(connection, X) is None, "a partitioned topic is not listed by its own name"
        assert own_topic(connection, PARTITION) is None
        assert own_topic(connection, X) == listed_topic(connection, PARTITION)
        assert own_topic(connection, X) == named_topic(connection, PARTITION)
        assert named_topic(connection, TopicName.parse("persistent://a/b/x")) is None
