"""A change concerns a question if a topic that changed matches its pattern; if that is not known, it does."""

from __future__ import annotations

import weakref

import pytest

from broker_core.catalog.snapshots import recent_changes
from broker_core.catalog.snapshots.recent_changes import RecentChanges
from broker_core.catalog.store.log_rows import read_recent
from broker_core.catalog.store.sqlite_catalog import SqliteCatalog
from broker_core.change_log import CatalogVersion
from broker_core.listing.listing import Listing
from broker_core.names import Mode
from broker_core.patterns import TopicsPattern, compile_pattern
from broker_core.snapshots import Snapshot
from tests.catalog.filled import bring
from tests.catalog.listers import NAMESPACE, topic
from tests.support.narrowed import present


def pattern(text: str) -> TopicsPattern:
    return compile_pattern(f"persistent://{text}")


def snapshot_of(catalog: SqliteCatalog, keys: tuple[str, ...] = ()) -> Snapshot:
    return Snapshot(catalog.version(NAMESPACE), Listing.from_names(NAMESPACE, Mode.PERSISTENT, []), keys)


class Followed:
    """What changed since its making, as of each look."""

    def __init__(self, catalog: SqliteCatalog, *keys: str) -> None:
        self._catalog = catalog
        self.recent = RecentChanges(snapshot_of(catalog, keys))
        self.number = self.recent.version.number

    def concern(self, text: str, since: int | None = None, *, by_properties: bool = False) -> bool:
        with self._catalog.reading() as connection:
            rows = read_recent(connection, NAMESPACE, self.recent.version, 100)
        self.recent.follow(present(rows), 1)
        number = self.number if since is None else since
        return self.recent.concern(pattern(text), number, by_properties=by_properties)


def test_topics_that_come_or_go_concern_patterns_that_match_them(catalog: SqliteCatalog) -> None:
    catalog.create(topic("old"))
    followed = Followed(catalog)
    assert not followed.concern("a/b/.*")
    catalog.create(topic("new"))
    assert followed.concern("a/b/n.*")
    assert not followed.concern("a/b/o.*")
    catalog.delete(topic("old"))
    assert followed.concern("a/b/o.*")
    assert not followed.concern("a/b/p.*")


def test_partitions_are_matched_by_their_topics_name(catalog: SqliteCatalog) -> None:
    catalog.create(topic("x"), partitions=2)
    followed = Followed(catalog)
    bring(catalog, {"name": "x-partition-3-partition-4", "partitions": 3})
    assert followed.concern("a/b/x-partition-3")
    assert followed.concern("a/b/x-partition-3-partition-4")
    assert not followed.concern("a/b/x")
    catalog.delete(topic("x"))
    assert followed.concern("a/b/x")


def test_a_property_that_selects_concerns_questions_by_properties_alone(catalog: SqliteCatalog) -> None:
    catalog.create(topic("x"))
    followed = Followed(catalog, "region")
    catalog.set_properties(topic("x"), {"team": "red"})
    assert not followed.concern("a/b/x", by_properties=True)
    catalog.set_properties(topic("x"), {"region": "eu"})
    assert not followed.concern("a/b/x")
    assert followed.concern("a/b/x", by_properties=True)
    assert not followed.concern("a/b/y", by_properties=True)


def test_what_changed_before_a_version_does_not_concern_it(catalog: SqliteCatalog) -> None:
    followed = Followed(catalog)
    catalog.create(topic("x"))
    since = catalog.version(NAMESPACE).number
    catalog.create(topic("y"))
    assert followed.concern("a/b/x")
    assert not followed.concern("a/b/x", since)
    assert followed.concern("a/b/y", since)


def test_changes_that_were_forgotten_concern_everybody(
    catalog: SqliteCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recent_changes, "MOST_RECENT", 2)
    followed = Followed(catalog)
    for number in range(3):
        catalog.create(topic(f"x{number}"))
    assert followed.concern("a/b/none")
    assert not followed.concern("a/b/none", followed.number + 1)
    assert followed.concern("a/b/x2", followed.number + 1)


def test_a_listing_is_known_by_its_version_for_as_long_as_the_changes_since_are(
    catalog: SqliteCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recent_changes, "MOST_RECENT", 2)
    first = snapshot_of(catalog)
    recent = RecentChanges(first)
    reference = weakref.ref(first.listing)
    number = first.version.number
    assert recent.version_of(reference) == number
    del first
    assert reference() is None
    assert recent.version_of(reference) == number, "also after it is gone"
    for local in ("x", "y", "z"):
        catalog.create(topic(local))
    with catalog.reading() as connection:
        rows = read_recent(connection, NAMESPACE, CatalogVersion(catalog.catalog_id, 0), 100)
    recent.follow(present(rows), 1)
    second = snapshot_of(catalog)
    recent.listed_by(second)
    assert recent.version_of(reference) is None
    assert recent.version_of(weakref.ref(second.listing)) == catalog.version(NAMESPACE).number
