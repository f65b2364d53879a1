"""Counts of namespaces: those of listings, in pages of names, and moved by changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker_core.catalog import SqliteCatalog
from broker_core.catalog.store import namespace_counts
from broker_core.catalog.store.namespace_counts import MeantNames, NamespaceCounts
from broker_core.change_log import CatalogVersion, Changes
from broker_core.names import NamespaceName, TopicName

NAMESPACE = NamespaceName("a", "b")
SYSTEM = NamespaceName("pulsar", "system")


def test_namespaces_come_in_pages_by_name(catalog: SqliteCatalog) -> None:
    for name in ("c/d", "a/b", "a/c", "z/z"):
        catalog.create(TopicName("persistent", NamespaceName.parse(name), "x"))
    catalog.delete(TopicName("persistent", NamespaceName("a", "c"), "x"))  # it holds nothing any more
    counts = NamespaceCounts(catalog)
    assert counts.names("", 2) == ["a/b", "c/d"]
    assert counts.names("c/d", 2) == ["z/z"]
    assert counts.names("z/z", 2) == []


def test_namespaces_are_found_by_the_begin_and_parts_of_their_names(catalog: SqliteCatalog) -> None:
    for name in ("acme/orders", "acme/bills", "acme2/orders", "a_me/x", "zz/acme"):
        catalog.create(TopicName("persistent", NamespaceName.parse(name), "x"))
    counts = NamespaceCounts(catalog)
    for meant, expected in (
        (MeantNames(), ["a_me/x", "acme/bills", "acme/orders", "acme2/orders", "zz/acme"]),
        (MeantNames("acme/"), ["acme/bills", "acme/orders"]),
        (MeantNames("acme"), ["acme/bills", "acme/orders", "acme2/orders"]),
        (MeantNames("", ("acme",)), ["acme/bills", "acme/orders", "acme2/orders", "zz/acme"]),
        (MeantNames("", ("rs", "acme")), ["acme/orders", "acme2/orders"]),
        (MeantNames("", ("%",)), []),
        (MeantNames("a_me"), ["a_me/x"]),
    ):
        assert counts.names("", 10, meant) == expected
        assert counts.total(meant) == len(expected)
        assert counts.names(expected[0] if expected else "", 1, meant) == expected[1:2]


def test_the_last_change_of_a_namespace_is_that_of_its_log(catalog: SqliteCatalog) -> None:
    topic = TopicName("persistent", NAMESPACE, "x")
    catalog.create(topic)
    catalog.set_properties(topic, {"a": "b"})
    counts = NamespaceCounts(catalog)
    last = catalog.changes(NAMESPACE, CatalogVersion(catalog.version(NAMESPACE).catalog_id, 0))
    assert isinstance(last, Changes)
    kept = counts.count([NAMESPACE, SYSTEM])
    assert [each.changed for each in kept] == [last.changes[-1].time, None]
    catalog.set_properties(topic, {"a": "c"})
    later = counts.count([NAMESPACE])[0].changed
    assert later is not None
    assert later >= last.changes[-1].time
    assert later == catalog.changes(NAMESPACE, last.version).changes[-1].time  # type: ignore[union-attr]


def test_a_count_is_that_of_a_listing(catalog: SqliteCatalog) -> None:
    catalog.create(TopicName("persistent", NAMESPACE, "x"), partitions=3)
    catalog.create(TopicName("persistent", NAMESPACE, "y__z"))
    catalog.create(TopicName("non-persistent", NAMESPACE, "x"))
    for hidden in ("__change_events", "a__transaction_pending_ack"):
        catalog.create(TopicName("persistent", NAMESPACE, hidden))
    catalog.create(TopicName("persistent", NAMESPACE, "__transaction_buffer_snapshot"), partitions=2)
    catalog.create(TopicName("persistent", SYSTEM, "transaction_coordinator_assign"), partitions=16)
    catalog.create(TopicName("persistent", SYSTEM, "mine"))
    nothing = NamespaceName("never", "seen")
    found = NamespaceCounts(catalog).count([SYSTEM, nothing, NAMESPACE])
    assert [each.namespace for each in found] == [SYSTEM, nothing, NAMESPACE]
    assert [each.names for each in found] == [(1, 0), (0, 0), (4, 1)]
    assert found[1].version.number == 0
    for each in found:
        assert each.version.same_state(catalog.version(each.namespace))
        assert each.version.stamp == catalog.version(each.namespace).stamp


def test_a_namespace_is_counted_once_and_then_moved(
    catalog: SqliteCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog.create(TopicName("persistent", NAMESPACE, "many"), partitions=10)
    catalog.create(TopicName("persistent", SYSTEM, "mine"))
    counts = NamespaceCounts(catalog)
    _, other = counts.count([NAMESPACE, SYSTEM])
    monkeypatch.setattr(namespace_counts, "_counted", lambda _connection, missing: list(missing))
    catalog.create(TopicName("non-persistent", NAMESPACE, "x"), partitions=5)
    catalog.create(TopicName("persistent", NAMESPACE, "__change_events"))
    catalog.delete(TopicName("persistent", NAMESPACE, "many-partition-7"))
    moved = counts.count([NAMESPACE])[0]
    assert moved.names == (9, 5)
    assert moved.version == catalog.version(NAMESPACE)
    # What has not changed is not even asked for changes.
    monkeypatch.setattr(namespace_counts, "read_changes", None)
    assert all(
        now is kept for now, kept in zip(counts.count([SYSTEM, NAMESPACE]), (other, moved), strict=True)
    )


def test_what_the_log_does_not_lead_to_is_counted_anew(tmp_path: Path, catalog: SqliteCatalog) -> None:
    catalog.create(TopicName("persistent", NAMESPACE, "many"), partitions=1000)
    counts = NamespaceCounts(catalog)
    assert counts.count([NAMESPACE])[0].names == (1000, 0)
    with SqliteCatalog(tmp_path / "other.sqlite") as other:
        other.create(TopicName("persistent", NAMESPACE, "few"), partitions=400)
        connection = other.connect()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.close()
    for leftover in catalog.path.parent.glob(f"{catalog.path.name}-*"):
        leftover.unlink()
    (tmp_path / "other.sqlite").rename(catalog.path)
    assert counts.count([NAMESPACE])[0].names == (400, 0)
