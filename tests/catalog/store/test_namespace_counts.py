"""Counts of namespaces: those of listings, in pages of names, and moved by changes."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from broker_core.catalog import SqliteCatalog, import_topics
from broker_core.catalog.store import namespace_counts
from broker_core.catalog.store.namespace_counts import NamespaceCounts, NamespaceFilter
from broker_core.change_log import CatalogVersion, Changes
from broker_core.names import NamespaceName, TopicName
from tests.support.narrowed import of_type

NAMESPACE = NamespaceName("a", "b")
SYSTEM = NamespaceName("pulsar", "system")


def test_namespaces_come_in_pages_by_name(catalog: SqliteCatalog) -> None:
    for name in ("c/d", "a/b", "a/c", "z/z"):
        catalog.create(TopicName("persistent", NamespaceName.parse(name), "x"))
    catalog.delete(TopicName("persistent", NamespaceName("a", "c"), "x"))  # it holds nothing any more
    counts = NamespaceCounts(catalog)
    assert [*counts.states("", 2)] == ["a/b", "c/d"]
    assert [*counts.states("c/d", 2)] == ["z/z"]
    assert [*counts.states("z/z", 2)] == []


def test_namespaces_are_found_by_the_begin_and_parts_of_their_names(catalog: SqliteCatalog) -> None:
    for name in ("acme/orders", "acme/bills", "acme2/orders", "a_me/x", "zz/acme"):
        catalog.create(TopicName("persistent", NamespaceName.parse(name), "x"))
    counts = NamespaceCounts(catalog)
    for meant, expected in (
        (NamespaceFilter(), ["a_me/x", "acme/bills", "acme/orders", "acme2/orders", "zz/acme"]),
        (NamespaceFilter("acme/"), ["acme/bills", "acme/orders"]),
        (NamespaceFilter("acme"), ["acme/bills", "acme/orders", "acme2/orders"]),
        (NamespaceFilter("", ("acme",)), ["acme/bills", "acme/orders", "acme2/orders", "zz/acme"]),
        (NamespaceFilter("", ("rs", "acme")), ["acme/orders", "acme2/orders"]),
        (NamespaceFilter("", ("%",)), []),
        (NamespaceFilter("a_me"), ["a_me/x"]),
    ):
        assert [*counts.states("", 10, meant)] == expected
        assert counts.total(meant) == len(expected)
        assert [*counts.states(expected[0] if expected else "", 1, meant)] == expected[1:2]


def test_the_last_change_of_a_namespace_is_that_of_its_log(catalog: SqliteCatalog) -> None:
    topic = TopicName("persistent", NAMESPACE, "x")
    catalog.create(topic)
    catalog.set_properties(topic, {"a": "b"})
    counts = NamespaceCounts(catalog)
    last = of_type(
        catalog.changes(NAMESPACE, CatalogVersion(catalog.version(NAMESPACE).catalog_id, 0)), Changes
    )
    kept = counts.count([NAMESPACE, SYSTEM])
    assert [each.changed for each in kept] == [_text(last), None]
    catalog.set_properties(topic, {"a": "c"})
    later = of_type(catalog.changes(NAMESPACE, last.version), Changes)
    assert counts.count([NAMESPACE])[0].changed == _text(later)


def _text(changes: Changes) -> str:
    return changes.changes[-1].time.isoformat(timespec="milliseconds")


def test_states_are_those_of_now_and_read_once_while_nothing_is_committed(
    catalog: SqliteCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = TopicName("persistent", NAMESPACE, "x")
    catalog.create(topic)
    counts = NamespaceCounts(catalog)
    first = counts.states("", 10)
    assert counts.states("", 10) is first
    # What comes by a connection that the counts read with is seen, and what another file has.
    catalog.create(TopicName("persistent", NAMESPACE, "y"))
    second = counts.states("", 10)
    assert [*second] == [*first]
    assert second != first
    (count,) = counts.count([NAMESPACE], second)
    assert (count.names, count.version) == ((2, 0), catalog.version(NAMESPACE))
    with monkeypatch.context() as patched:
        patched.setattr(
            catalog, "reading", None
        )  # what is counted in a state is that, without a look at the file
        assert counts.count([NAMESPACE], counts.states("", 10)) == [count]
    catalog.delete(topic)
    assert counts.count([NAMESPACE], counts.states("", 10))[0].names == (1, 0)
    # In a state that was, what is not kept any more is counted as it is now, with its version.
    now = counts.count([NAMESPACE], first)[0]
    assert (now.names, now.version) == ((1, 0), catalog.version(NAMESPACE))
    counts.close()
    assert [*counts.states("", 10)] == [str(NAMESPACE)]


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
    catalog.create(TopicName("persistent", NAMESPACE, "many"), partitions=120)
    catalog.create(TopicName("persistent", SYSTEM, "mine"))
    counts = NamespaceCounts(catalog)
    _, other = counts.count([NAMESPACE, SYSTEM])
    monkeypatch.setattr(namespace_counts, "_counted", lambda _connection, missing: list(missing))
    catalog.create(TopicName("non-persistent", NAMESPACE, "x"), partitions=5)
    catalog.create(TopicName("persistent", NAMESPACE, "__change_events"))
    catalog.delete(TopicName("persistent", NAMESPACE, "many-partition-7"))
    moved = counts.count([NAMESPACE])[0]
    assert moved.names == (119, 5)
    assert moved.version == catalog.version(NAMESPACE)
    # What has not changed is not even asked for changes.
    monkeypatch.setattr(namespace_counts, "read_changes", None)
    assert all(
        now is kept for now, kept in zip(counts.count([SYSTEM, NAMESPACE]), (other, moved), strict=True)
    )


def test_a_namespace_of_which_much_has_changed_is_counted_anew(
    catalog: SqliteCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    import_topics(catalog, NAMESPACE, io.BytesIO(b"".join(b"a%d\n" % number for number in range(119))))
    counts = NamespaceCounts(catalog)
    assert counts.count([NAMESPACE])[0].names == (119, 0)
    monkeypatch.setattr(namespace_counts, "read_changes", None)
    catalog.create(TopicName("persistent", NAMESPACE, "one"))
    assert counts.count([NAMESPACE])[0].names == (120, 0), "few names"
    monkeypatch.undo()
    monkeypatch.setattr(namespace_counts, "_after", None)
    import_topics(catalog, NAMESPACE, io.BytesIO(b"".join(b"b%d\n" % number for number in range(5))))
    assert counts.count([NAMESPACE])[0].names == (125, 0), "many changes"


def test_what_the_log_does_not_lead_to_is_counted_anew(tmp_path: Path, catalog: SqliteCatalog) -> None:
    catalog.create(TopicName("persistent", NAMESPACE, "many"), partitions=1000)
    counts = NamespaceCounts(catalog)
    assert counts.count([NAMESPACE], counts.states("", 10))[0].names == (1000, 0)
    with SqliteCatalog(tmp_path / "other.sqlite") as other:
        other.create(TopicName("persistent", NAMESPACE, "few"), partitions=400)
        connection = other.connect()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.close()
    for leftover in catalog.path.parent.glob(f"{catalog.path.name}-*"):
        leftover.unlink()
    (tmp_path / "other.sqlite").rename(catalog.path)
    assert counts.count([NAMESPACE], counts.states("", 10))[0].names == (400, 0)
