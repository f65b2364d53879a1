from __future__ import annotations

import pytest

from broker_core.catalog import SqliteCatalog
from broker_core.catalog.bulk_changes import (
    PropertiesChange,
    PropertiesReport,
    set_properties,
    set_properties_of_matching,
)
from broker_core.catalog.catalog_errors import CatalogError, TopicMissing
from broker_core.names import TopicName
from tests.catalog.filled import NAMESPACE, all_names, bring


def topic(name: str) -> TopicName:
    return TopicName("persistent", NAMESPACE, name)


@pytest.mark.parametrize("name", ["p", "p-partition-0", "p-partition-2"])
def test_a_topic_with_all_its_partitions(catalog: SqliteCatalog, name: str) -> None:
    bring(catalog, {"name": "p", "partitions": 3, "properties": {"x": "1", "y": "2"}}, "other")
    report = set_properties(catalog, topic(name), PropertiesChange({"z": "3"}, ("x",)))
    assert report == PropertiesReport(topics=1, names=3, changed=1)
    partitions = {f"persistent://a/b/p-partition-{number}": {"y": "2", "z": "3"} for number in range(3)}
    assert all_names(catalog) == {"persistent://a/b/other": {}, **partitions}


def test_what_is_so_already_is_no_version(catalog: SqliteCatalog) -> None:
    bring(catalog, {"name": "x", "properties": {"k": "v"}})
    assert set_properties(catalog, topic("x"), PropertiesChange({"k": "v"})).changed == 0
    assert set_properties(catalog, topic("x"), PropertiesChange({"k": "w"}), dry_run=True).changed == 1
    assert catalog.version(NAMESPACE).number == 1
    set_properties(catalog, topic("x"), PropertiesChange(replace=True))
    assert all_names(catalog) == {"persistent://a/b/x": {}}


def test_all_that_match(catalog: SqliteCatalog) -> None:
    bring(catalog, {"name": "a", "properties": {"k": "v"}}, "b", {"name": "c", "partitions": 2})
    change = PropertiesChange({"k": "v"})
    report = set_properties_of_matching(catalog, NAMESPACE, "a/b/[abc]", change)
    assert report == PropertiesReport(topics=3, names=4, changed=2)
    assert set(map(str, all_names(catalog).values())) == {"{'k': 'v'}"}


def test_what_cannot_be_is_refused(catalog: SqliteCatalog) -> None:
    bring(catalog, "x")
    with pytest.raises(TopicMissing):
        set_properties(catalog, topic("absent"), PropertiesChange({"k": "v"}))
    for wrong in (
        PropertiesChange(),
        PropertiesChange({"k": "v"}, ("k",)),
        PropertiesChange({"k": "v" * 100_000}),
    ):
        with pytest.raises(CatalogError):
            set_properties(catalog, topic("x"), wrong)
    assert catalog.version(NAMESPACE).number == 1
