from __future__ import annotations

import io

import pytest

from broker_core.catalog import SqliteCatalog
from broker_core.catalog.bulk_changes import delete_matching, delete_of_file
from broker_core.catalog.catalog_errors import ImportRefused, TopicMissing
from broker_core.guards import Deletions, MassDeletion
from tests.catalog.filled import NAMESPACE, all_names, bring


def test_by_a_pattern_with_all_partitions_of_either_domain(catalog: SqliteCatalog) -> None:
    bring(catalog, "a1", "b1", "non-persistent://a/b/a2", {"name": "a3", "partitions": 2})
    report = delete_matching(catalog, NAMESPACE, "a/b/a.*", Deletions(), dry_run=True)
    assert report.names == 4
    assert report.topics == ("persistent://a/b/a1", "persistent://a/b/a3", "non-persistent://a/b/a2")
    assert catalog.version(NAMESPACE).number == 1
    assert delete_matching(catalog, NAMESPACE, "a/b/a.*", Deletions()) == report
    assert set(all_names(catalog)) == {"persistent://a/b/b1"}
    assert delete_matching(catalog, NAMESPACE, "a/b/a.*", Deletions()).names == 0
    assert catalog.version(NAMESPACE).number == 2


def test_by_a_file_all_or_none(catalog: SqliteCatalog) -> None:
    bring(
        catalog, "x", {"name": "p", "partitions": 4}, {"name": "q", "partitions": 2}, "non-persistent://a/b/n"
    )
    before = all_names(catalog)
    for file, error in (
        (b"x\nabsent", TopicMissing),
        (b"p-partition-4", TopicMissing),
        (b"x\n\n", ImportRefused),
        (b"persistent://c/d/x", ImportRefused),
    ):
        with pytest.raises(error):
            delete_of_file(catalog, NAMESPACE, io.BytesIO(file), Deletions())
        assert all_names(catalog) == before
    file = b"q\np-partition-0\np-partition-2\nnon-persistent://a/b/n\nq"
    report = delete_of_file(catalog, NAMESPACE, io.BytesIO(file), Deletions())
    assert report.names == 5
    assert set(report.topics) == {
        "persistent://a/b/q",
        "persistent://a/b/p-partition-0",
        "persistent://a/b/p-partition-2",
        "non-persistent://a/b/n",
    }
    left = {"persistent://a/b/x", "persistent://a/b/p-partition-1", "persistent://a/b/p-partition-3"}
    assert set(all_names(catalog)) == left


def test_an_export_deletes_all_that_it_has(catalog: SqliteCatalog) -> None:
    bring(catalog, "x", {"name": "p", "partitions": 4}, "y", "y-partition-3")
    file = b'{"name": "x"}\n{"name": "p", "partitions": 4}\n{"name": "y", "partitions": 0}\n{"name": "y-partition-3"}'
    assert delete_of_file(catalog, NAMESPACE, io.BytesIO(file), Deletions()).names == 7
    assert all_names(catalog) == {}


def test_more_than_is_allowed_is_refused(catalog: SqliteCatalog) -> None:
    bring(catalog, *(f"t{number}" for number in range(250)))
    names = "\n".join(f"t{number}" for number in range(120)).encode()
    with pytest.raises(MassDeletion, match="120 of 250 listed names"):
        delete_of_file(catalog, NAMESPACE, io.BytesIO(names), Deletions())
    with pytest.raises(MassDeletion, match="250 of 250 listed names"):
        delete_matching(catalog, NAMESPACE, ".*", Deletions(most=120))
    assert len(all_names(catalog)) == 250
    assert delete_of_file(catalog, NAMESPACE, io.BytesIO(names), Deletions(most=120)).names == 120
    assert delete_matching(catalog, NAMESPACE, ".*", Deletions(mass=True)).names == 130
