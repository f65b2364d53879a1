from __future__ import annotations

from pathlib import Path

import pytest

from broker_core.catalog import SqliteCatalog
from broker_core.catalog.bulk_changes import TopicState, change_topics, topics_matching
from broker_core.catalog.store.change_log_writer import LogBounds
from broker_core.change_log import Changes, Gap, Operation
from broker_core.errors import InvalidPattern
from tests.catalog.filled import NAMESPACE, all_names, bring
from tests.support.narrowed import of_type


def test_many_topics_change_at_one_version_that_the_log_leads_to(catalog: SqliteCatalog) -> None:
    bring(catalog, "plain", "gone", {"name": "p", "partitions": 3, "properties": {"k": "v"}})
    before = catalog.version(NAMESPACE)
    with catalog.changing(NAMESPACE) as (connection, change):
        states = [
            TopicState(0, "gone", "", None),
            TopicState(0, "p", "0,2", '{"k":"v"}'),
            TopicState(0, "plain", "*", '{"x":"1"}'),
        ]
        assert change_topics(connection, change, states) == 3
    assert all_names(catalog) == {
        "persistent://a/b/p-partition-0": {"k": "v"},
        "persistent://a/b/p-partition-2": {"k": "v"},
        "persistent://a/b/plain": {"x": "1"},
    }
    changes = of_type(catalog.changes(NAMESPACE, before), Changes)
    assert changes.version.number == before.number + 1
    assert {change.name.local: change.operation for change in changes} == {
        "gone": Operation.DELETE,
        "p": Operation.UPDATE,
        "plain": Operation.UPDATE,
    }
    assert [name for change in changes for name in change.removed] == [
        "persistent://a/b/gone",
        "persistent://a/b/p-partition-1",
    ]


def test_nothing_is_no_version(catalog: SqliteCatalog) -> None:
    bring(catalog, "a")
    with catalog.changing(NAMESPACE) as (connection, change):
        assert change_topics(connection, change, []) == 0
    assert catalog.version(NAMESPACE).number == 1


def test_more_than_the_log_holds_is_a_gap(tmp_path: Path) -> None:
    with SqliteCatalog(tmp_path / "c.sqlite", log=LogBounds(rows=2)) as catalog:
        bring(catalog, "a", "b", "c")
        before = catalog.version(NAMESPACE)
        with catalog.changing(NAMESPACE) as (connection, change):
            change_topics(connection, change, [TopicState(0, name, "", None) for name in "abc"])
        assert isinstance(catalog.changes(NAMESPACE, before), Gap)
        assert all_names(catalog) == {}


def test_what_matches_is_what_a_listing_has(catalog: SqliteCatalog) -> None:
    bring(catalog, "a1", "ba1", "non-persistent://a/b/a2", {"name": "a3", "partitions": 2})
    with catalog.reading() as connection:

        def matching(pattern: str) -> list[tuple[int, str]]:
            return [
                (topic.domain, topic.base) for topic in topics_matching(connection, NAMESPACE, 1, pattern)
            ]

        assert matching("a/b/a.") == [(0, "a1"), (0, "a3"), (1, "a2")]
        assert matching("persistent://a/b/a3") == [(0, "a3")]
        assert matching("a/b/a") == []
        with pytest.raises(InvalidPattern, match=r"can match no topic of a/b: .* such as 'a/b/a3'"):
            matching("a3")
        with pytest.raises(InvalidPattern, match="Unsupported"):
            matching("(?!a).*")
