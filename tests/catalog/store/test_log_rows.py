"""Reads of the change log: a few rows, spans within bounds, and what the log does not lead to."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker_core.catalog.store.change_log_writer import LogBounds
from broker_core.catalog.store.log_rows import (
    LogSpan,
    RecentRow,
    RecentRows,
    SpanBound,
    read_changes,
    read_changes_of,
    read_recent,
    read_span,
    when,
)
from broker_core.catalog.store.sqlite_catalog import SqliteCatalog
from broker_core.change_log import CatalogVersion, Changes, Gap
from broker_core.compact_json import ascii_json
from broker_core.names import NamespaceName, TopicName
from tests.catalog.listers import NAMESPACE, topic
from tests.support.narrowed import of_type


def test_times_are_utc() -> None:
    assert when(1_767_225_600_123).isoformat() == "2026-01-01T00:00:00.123000+00:00"


def test_more_changes_than_are_of_use_are_not_read(tmp_path: Path) -> None:
    with SqliteCatalog(tmp_path / "topics.sqlite") as catalog:
        before = catalog.version(NAMESPACE)
        for number in range(5):
            catalog.create(topic(f"t{number}"))
        with catalog.reading() as connection:
            enough = read_changes(connection, NAMESPACE, before, most=5)
            assert not isinstance(enough, Gap)
            assert len(list(enough)) == 5
            gap = of_type(read_changes(connection, NAMESPACE, before, most=4), Gap)
            assert "more than 4 changes" in gap.reason


def test_a_few_changes_are_read_by_one_statement(tmp_path: Path) -> None:
    with SqliteCatalog(tmp_path / "topics.sqlite") as catalog:
        nothing = catalog.version(NAMESPACE)
        catalog.create(topic("x"), properties={"k": "1"})
        before = catalog.version(NAMESPACE)
        catalog.set_properties(topic("x"), {"k": "2"})
        catalog.create(TopicName("non-persistent", NAMESPACE, "y"), partitions=3)
        with catalog.reading() as connection:
            none = read_recent(connection, NamespaceName("a", "other"), nothing, 5)
            assert none == RecentRows(nothing, [])
            now = catalog.version(NAMESPACE)
            assert read_recent(connection, NAMESPACE, now, 0) == RecentRows(now, [])
            rows: list[RecentRow] = [
                (2, 0, "x", "*", "*", '{"k":"1"}', '{"k":"2"}'),
                (3, 1, "y", "", "0-2", None, "{}"),
            ]
            assert read_recent(connection, NAMESPACE, before, 2) == RecentRows(now, rows)
            assert read_recent(connection, NAMESPACE, before, 1) is None, "they are more"


@pytest.mark.parametrize("bounds", [LogBounds(), LogBounds(versions=2)])
def test_changes_that_the_log_does_not_lead_to_are_not_read(tmp_path: Path, bounds: LogBounds) -> None:
    with SqliteCatalog(tmp_path / "topics.sqlite", log=bounds) as catalog:
        versions = []
        for number in range(5):
            catalog.create(topic(f"t{number}"))
            versions.append(catalog.version(NAMESPACE))
        now = versions[-1]
        others = [
            CatalogVersion("another", now.number),
            CatalogVersion(now.catalog_id, now.number + 1),
            CatalogVersion(now.catalog_id, now.number, "another stamp"),
        ]
        with catalog.reading() as connection:
            for version in versions:
                is_gap = isinstance(read_changes(connection, NAMESPACE, version), Gap)
                assert (read_recent(connection, NAMESPACE, version, 9) is None) is is_gap
            for version in others:
                assert isinstance(read_changes(connection, NAMESPACE, version), Gap)
                assert read_recent(connection, NAMESPACE, version, 9) is None


def test_a_limit_cuts_between_versions_and_leads_on(tmp_path: Path) -> None:
    with SqliteCatalog(tmp_path / "c.sqlite") as catalog:
        catalog.create(topic("a"))
        catalog.create(topic("b"))
        catalog.create(topic("c"))
        catalog.delete_all([topic("a"), topic("b"), topic("c")])  # one version
        catalog.create(topic("d"))
        since = CatalogVersion(catalog.catalog_id, 0)
        steps = []
        while True:
            changes = of_type(catalog.changes(NAMESPACE, since, limit=2), Changes)
            if not changes:
                break
            steps.append([(change.version, change.name.local) for change in changes])
            assert changes.version.number == changes.changes[-1].version
            assert changes.version.stamp
            since = changes.version
        assert since.same_state(catalog.version(NAMESPACE))
        assert steps == [[(1, "a"), (2, "b")], [(3, "c")], [(4, "a"), (4, "b"), (4, "c")], [(5, "d")]]
        whole = of_type(catalog.changes(NAMESPACE, CatalogVersion(catalog.catalog_id, 0), limit=7), Changes)
        assert len(whole) == 7
        assert whole.version.same_state(catalog.version(NAMESPACE))


#: Texts of each length in UTF-8, some of which JSON escapes.
TEXTS = ("", "x" * 100, "é" * 100, "\N{SNOWMAN}" * 100, "\N{GRINNING FACE}" * 100, '\x01\n"\\' * 100)


@pytest.mark.parametrize("text", TEXTS)
def test_the_size_of_a_change_is_no_less_than_its_json(tmp_path: Path, text: str) -> None:
    with SqliteCatalog(tmp_path / "c.sqlite") as catalog:
        since = catalog.version(NAMESPACE)
        catalog.create(topic(f"a{text}"[:60]), partitions=3, properties={"k": text, f"_{text}": ""})
        with catalog.reading() as connection:
            span = of_type(read_span(connection, NAMESPACE, since, within=SpanBound(10)), LogSpan)
            assert span.size > 2 * len(ascii_json(text)) + 300
            assert isinstance(read_changes_of(connection, NAMESPACE, span), Changes)


def test_a_bound_of_bytes_cuts_between_versions(tmp_path: Path) -> None:
    with SqliteCatalog(tmp_path / "c.sqlite") as catalog:
        since = catalog.version(NAMESPACE)
        for name in "abc":
            catalog.create(topic(name), properties={"k": "x" * 1000})
        catalog.delete_all([topic(name) for name in "abc"])
        with catalog.reading() as connection:

            def span(since: CatalogVersion, size: int, alone: int) -> LogSpan | Gap:
                return read_span(connection, NAMESPACE, since, within=SpanBound(10, size, alone))

            two = of_type(span(since, 3000, 9000), LogSpan)
            assert (two.end.number, two.more, 2000 < two.size <= 3000) == (2, True, True)
            assert two.end.stamp
            third = of_type(span(two.end, 1000, 9000), LogSpan)
            assert (third.end.number, third.more, third.size > 1000) == (3, True, True)
            whole = of_type(span(third.end, 1000, 9000), LogSpan)
            assert (whole.end.number, whole.more, whole.size > 3000) == (4, False, True)
            changes = of_type(read_changes_of(connection, NAMESPACE, whole), Changes)
            assert [change.name.local for change in changes] == ["a", "b", "c"]
            gap = of_type(span(third.end, 1000, 3000), Gap)
            assert "3,000 bytes" in gap.reason
            assert span(whole.end, 1000, 3000) == LogSpan(whole.namespace, whole.end, whole.end)


def test_a_span_that_the_log_has_lost_is_a_gap(tmp_path: Path) -> None:
    with SqliteCatalog(tmp_path / "c.sqlite", log=LogBounds(versions=2)) as catalog:
        catalog.create(topic("a"))
        since = catalog.version(NAMESPACE)
        catalog.create(topic("b"))
        with catalog.reading() as connection:
            span = read_span(connection, NAMESPACE, since, within=SpanBound(10))
        assert isinstance(span, LogSpan)
        for name in "cde":
            catalog.create(topic(name))
        with catalog.reading() as connection:
            assert isinstance(read_changes_of(connection, NAMESPACE, span), Gap)
