from __future__ import annotations

from unittest.mock import patch

from broker_core.catalog.snapshots.topic_tables import load_topic_table
from broker_core.catalog.store import load_columns
from broker_core.catalog.store.sqlite_catalog import SqliteCatalog
from broker_core.listing.topic_table import TopicTable
from broker_core.names import NamespaceName, TopicName

NAMESPACE = NamespaceName("a", "b")


def load(catalog: SqliteCatalog) -> TopicTable:
    with catalog.reading() as connection:
        return load_topic_table(connection, NAMESPACE)


def test_a_namespace_that_never_had_a_topic(catalog: SqliteCatalog) -> None:
    assert load(catalog).size == 0


def test_persistent_topics_with_partitions_and_ids_in_any_blocks(catalog: SqliteCatalog) -> None:
    made = {}
    for name, partitions in (("plain", 0), ("parted", 3), ("x y", 0), ("__change_events", 0), ("z", 1)):
        made[name] = catalog.create(TopicName("persistent", NAMESPACE, name), partitions=partitions)
    catalog.create(TopicName("non-persistent", NAMESPACE, "other"))
    catalog.create(TopicName("persistent", NamespaceName("a", "c"), "elsewhere"))
    for block in (1, 2, 25_000):
        with patch.object(load_columns, "_BLOCK", block):
            table = load(catalog)
        rows = [chunk.row(row) for chunk in table.chunks for row in range(len(chunk))]
        assert [(row.name, row.partitions) for row in rows] == [(b"parted", 3), (b"plain", 1), (b"z", 1)]
        assert [row.topic_id for row in rows] == [made[row.name.decode()].topic_id.bytes for row in rows]
        assert table.left_out == 1
