"""What the log says of names: the net effect, by mode."""

from __future__ import annotations

from broker_core.catalog.snapshots.name_changes import LoggedNames, read_name_changes
from broker_core.catalog.store.sqlite_catalog import SqliteCatalog
from broker_core.change_log import CatalogVersion, Gap
from broker_core.listing.changes.version_splice import ListingChange
from broker_core.names import Mode
from tests.catalog.listers import NAMESPACE, topic

SINCE = CatalogVersion("id", 1)
NOW = CatalogVersion("id", 2)


def net(*rows: tuple[int, str, str, str, str | None, str | None], mode: Mode = Mode.ALL) -> ListingChange:
    return LoggedNames(NAMESPACE, SINCE, NOW, rows).changed(mode, ("team",))


def test_of_what_came_and_went_nothing_is_left() -> None:
    changed = net(
        (0, "a", "", "*", None, None),
        (0, "b", "*", "", None, None),
        (0, "a", "*", "", None, None),
        (0, "b", "", "*", None, None),
    )
    assert len(changed) == 0


def test_names_between_the_first_and_the_last_state_are_none() -> None:
    changed = net((0, "a", "0-1", "0-4", None, None), (0, "a", "0-4", "1-2", None, None))
    assert changed.removed == ["persistent://a/b/a-partition-0"]
    assert changed.added == ["persistent://a/b/a-partition-2"]


def test_a_topic_whose_properties_select_otherwise_is_put_in_with_all_names() -> None:
    red, blue = '{"team":"red"}', '{"team":"blue","x":"1"}'
    changed = net((0, "a", "*,0", "*,0", red, blue), (0, "b", "*", "*", red, '{"team":"red","x":"1"}'))
    assert changed.removed == []
    assert changed.added == ["persistent://a/b/a", "persistent://a/b/a-partition-0"]
    assert changed.properties == {"team": ["blue", "blue"]}


def test_a_name_that_two_topics_are_listed_by_is_put_in_once() -> None:
    changed = net((0, "a", "", "1", None, None), (0, "a-partition-1", "", "*", None, '{"team":"red"}'))
    assert changed.added == ["persistent://a/b/a-partition-1"]
    assert changed.properties == {"team": ["red"]}


def test_they_are_counted_by_mode() -> None:
    changes = LoggedNames(
        NAMESPACE, SINCE, NOW, [(0, "a", "", "0-2", None, None), (1, "b", "*", "0", None, None)]
    )
    assert (len(changes), changes.count(), changes.count(Mode.PERSISTENT)) == (2, 5, 3)
    assert list(changes.names(Mode.NON_PERSISTENT)) == [
        "non-persistent://a/b/b",
        "non-persistent://a/b/b-partition-0",
    ]
    assert changes.changed(Mode.NON_PERSISTENT, ()).removed == ["non-persistent://a/b/b"]


def test_they_are_read_from_the_log(catalog: SqliteCatalog) -> None:
    catalog.create(topic("a"))
    since = catalog.version(NAMESPACE)
    catalog.create(topic("b", "non-persistent"), partitions=2, properties={"team": "red"})
    with catalog.reading() as connection:
        plain = read_name_changes(connection, NAMESPACE, since, most=1, properties=False)
        changes = read_name_changes(connection, NAMESPACE, since, most=1, properties=True)
        assert isinstance(read_name_changes(connection, NAMESPACE, since, most=0, properties=False), Gap)
    assert isinstance(plain, LoggedNames)
    assert isinstance(changes, LoggedNames)
    assert plain.rows == [(1, "b", "", "0-1", None, None)]
    assert changes.rows == [(1, "b", "", "0-1", None, '{"team":"red"}')]
    assert changes.version == catalog.version(NAMESPACE)
