from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker_core.catalog.store.change_log_writer import LogBounds
from broker_core.catalog.store.sqlite_catalog import SqliteCatalog
from broker_core.change_log import CatalogVersion, Changes, Gap, Operation
from broker_core.names import NamespaceName, TopicName
from tests.catalog.filled import bring
from tests.catalog.listers import NAMESPACE, topic
from tests.support.examples import examples
from tests.support.narrowed import of_type


def test_a_change_has_all_of_before_and_after(tmp_path: Path) -> None:
    with SqliteCatalog(tmp_path / "c.sqlite") as catalog:
        made = catalog.create(topic("x"), partitions=1, properties={"k": "1"})
        since = catalog.version(NAMESPACE)
        bring(catalog, {"name": "x-partition-4", "properties": {"k": "2"}})
        changes = catalog.changes(NAMESPACE, since)
    assert isinstance(changes, Changes)
    (change,) = changes
    assert changes.since == since
    assert changes.version.number == change.version == 2
    assert change.operation is Operation.UPDATE
    assert change.name == topic("x")
    assert change.topic_id == made.topic_id
    assert (str(change.listed_before), str(change.listed_after)) == ("0", "0,4")
    assert (change.properties_before, change.properties_after) == ({"k": "1"}, {"k": "2"})
    assert change.time >= made.created


def test_a_namespace_has_versions_and_changes_of_its_own(tmp_path: Path) -> None:
    with SqliteCatalog(tmp_path / "c.sqlite") as catalog:
        catalog.create(topic("x"))
        catalog.create(TopicName.parse("persistent://other/space/y"))
        other = NamespaceName("other", "space")
        assert catalog.version(other).number == 1
        changes = catalog.changes(other, CatalogVersion(catalog.catalog_id, 0))
    assert [change.name.local for change in of_type(changes, Changes)] == ["y"]


@pytest.mark.parametrize("bounds", [LogBounds(versions=3), LogBounds(rows=3)])
def test_the_log_is_bounded_and_says_where_it_begins(tmp_path: Path, bounds: LogBounds) -> None:
    with SqliteCatalog(tmp_path / "c.sqlite", log=bounds) as catalog:
        for number in range(20):
            catalog.create(topic(f"x{number}"))
        known = [
            number
            for number in range(21)
            if isinstance(catalog.changes(NAMESPACE, CatalogVersion(catalog.catalog_id, number)), Changes)
        ]
        assert known[-1] == 20
        assert known == list(range(known[0], 21))
        assert 2 <= 20 - known[0] <= 3
        gap = of_type(catalog.changes(NAMESPACE, CatalogVersion(catalog.catalog_id, known[0] - 1)), Gap)
        assert gap.version == catalog.version(NAMESPACE)
        assert f"back to version {known[0]} only" in gap.reason
        connection = catalog.connect()
        assert connection.execute("SELECT count(*) FROM changes").fetchone() == (20 - known[0],)
        connection.close()


@pytest.mark.parametrize("bounds", [LogBounds(versions=0), LogBounds(rows=0)])
def test_without_a_log_each_change_is_a_gap(tmp_path: Path, bounds: LogBounds) -> None:
    with SqliteCatalog(tmp_path / "c.sqlite", log=bounds) as catalog:
        for number in range(3):
            since = catalog.version(NAMESPACE)
            catalog.create(topic(f"x{number}"))
            assert isinstance(catalog.changes(NAMESPACE, since), Gap)
            assert isinstance(catalog.changes(NAMESPACE, catalog.version(NAMESPACE)), Changes)


def test_versions_of_another_catalogue_or_of_the_future_are_gaps(tmp_path: Path) -> None:
    with SqliteCatalog(tmp_path / "c.sqlite") as catalog:
        catalog.create(topic("x"))
        foreign = catalog.changes(NAMESPACE, CatalogVersion("another", 1))
        future = catalog.changes(NAMESPACE, CatalogVersion(catalog.catalog_id, 2))
    assert "another catalogue" in of_type(foreign, Gap).reason
    assert "older than the version" in of_type(future, Gap).reason


@settings(max_examples=examples(8))
@given(st.lists(st.tuples(st.integers(0, 4), st.booleans()), max_size=25), st.data())
def test_whoever_replays_the_log_has_the_topics(
    tmp_path_factory: pytest.TempPathFactory, acts: list[tuple[int, bool]], data: st.DataObject
) -> None:
    with SqliteCatalog(tmp_path_factory.mktemp("log") / "c.sqlite") as catalog:
        states: list[set[str]] = [set()]
        names: set[str] = set()
        for number, partitioned in acts:
            name = topic(f"x{number}")
            if catalog.topic(name):
                names -= set(catalog.delete(name).names)
            else:
                names |= set(catalog.create(name, partitions=2 * partitioned).names)
            states.append(set(names))
        start = data.draw(st.integers(0, len(states) - 1))
        replayed = set(states[start])
        changes = of_type(catalog.changes(NAMESPACE, CatalogVersion(catalog.catalog_id, start)), Changes)
        for change in changes:
            replayed -= set(change.removed)
            replayed |= set(change.added)
        assert replayed == names


@pytest.mark.parametrize("bounds", [LogBounds(), LogBounds(rows=0), LogBounds(versions=2)])
def test_a_version_that_comes_again_after_a_restore_is_another_one(tmp_path: Path, bounds: LogBounds) -> None:
    path = tmp_path / "c.sqlite"
    with SqliteCatalog(path, log=bounds) as catalog:
        catalog.create(topic("kept"))
        before = catalog.version(NAMESPACE)
        with sqlite3.connect(path) as source, sqlite3.connect(tmp_path / "copy") as copy:
            source.backup(copy)
        source.close()
        catalog.create(topic("lost"))
        lost = catalog.version(NAMESPACE)
    path.unlink()
    (tmp_path / "copy").rename(path)
    copy.close()
    with SqliteCatalog(path, log=bounds) as catalog:
        assert catalog.version(NAMESPACE).same_state(before)
        for name in ("other", "more"):
            catalog.create(topic(name))
            now = catalog.version(NAMESPACE)
            gap = catalog.changes(NAMESPACE, lost)
            assert isinstance(gap, Gap), name
            assert not now.same_state(lost)
            assert isinstance(catalog.changes(NAMESPACE, now), Changes)
        assert catalog.version(NAMESPACE).number == lost.number + 1
        assert bounds != LogBounds() or isinstance(catalog.changes(NAMESPACE, before), Changes)


def test_only_versions_that_the_log_leads_from_keep_their_stamps(tmp_path: Path) -> None:
    with SqliteCatalog(tmp_path / "c.sqlite", log=LogBounds(versions=3)) as catalog:
        for number in range(20):
            catalog.create(topic(f"x{number}"))
        with catalog.reading() as connection:
            kept = [number for (number,) in connection.execute("SELECT version FROM stamps")]
    assert kept == [17, 18, 19, 20]
