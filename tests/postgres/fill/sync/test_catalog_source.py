from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from broker_core.catalog import SqliteCatalog
from broker_core.names import NamespaceName, TopicName
from broker_core_postgres.fill.sync.catalog_source import CatalogSource
from broker_core_postgres.fill.sync.scope import EVERYTHING, Scope

NAMESPACE = NamespaceName("a", "b")


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[SqliteCatalog]:
    with SqliteCatalog(tmp_path / "catalog.sqlite") as catalog:
        yield catalog


async def test_it_says_every_listed_name_with_its_topics_properties(catalog: SqliteCatalog) -> None:
    catalog.create(TopicName.parse("persistent://a/b/plain"))
    catalog.create(TopicName.parse("persistent://a/b/x"), partitions=2, properties={"k": "v"})
    catalog.create(TopicName.parse("non-persistent://a/b/np"), partitions=6)
    for index in range(5):
        catalog.delete(TopicName.parse(f"non-persistent://a/b/np-partition-{index}"))
    catalog.create(TopicName.parse("persistent://a/b/nul"), properties={"k": "\0"})
    catalog.create(TopicName.parse("persistent://c/d/other"))
    source = CatalogSource(catalog)
    assert source.name == "catalog"
    assert list(map(str, (await source.inventory(EVERYTHING)).namespaces)) == ["a/b", "c/d"]
    assert list(map(str, (await source.inventory(Scope(("c",)))).namespaces)) == ["c/d"]
    topics = await source.read_namespace(NAMESPACE)
    persistent, other = topics.parts
    assert list(zip(persistent.names, persistent.topics, persistent.properties, strict=True)) == [
        ("nul", "nul", None),
        ("plain", "plain", "{}"),
        ("x-partition-0", "x", '{"k":"v"}'),
        ("x-partition-1", "x", '{"k":"v"}'),
    ]
    assert (other.names, other.topics) == (["np-partition-5"], ["np"])
    assert topics.unread.keys() == {"persistent://a/b/nul"}


async def test_a_namespace_that_it_does_not_have_is_empty(catalog: SqliteCatalog) -> None:
    assert len(await CatalogSource(catalog).read_namespace(NAMESPACE)) == 0
