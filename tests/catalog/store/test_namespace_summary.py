from __future__ import annotations

from pathlib import Path

from broker_core.catalog import SqliteCatalog
from broker_core.catalog.store.namespace_counts import summarize
from broker_core.names import NamespaceName, TopicName
from tests.catalog.filled import bring

NAMESPACE = NamespaceName("a", "b")


def test_a_namespace_is_counted(tmp_path: Path) -> None:
    with SqliteCatalog(tmp_path / "t.sqlite") as catalog:
        empty = summarize(catalog, NAMESPACE)
        assert (empty.topics, empty.names, empty.with_details, empty.version.number) == (0, 0, 0, 0)
        catalog.create(TopicName("persistent", NAMESPACE, "x"), partitions=3, properties={"k": "v"})
        bring(catalog, "y-partition-7")
        catalog.create(TopicName("non-persistent", NAMESPACE, "z"), properties={})
        catalog.create(TopicName("persistent", NamespaceName("a", "c"), "elsewhere"))
        full = summarize(catalog, NAMESPACE)
        assert (full.topics, full.names, full.with_details) == (3, 5, 1)
        assert full.version == catalog.version(NAMESPACE)
