from __future__ import annotations

import io
import json
import tracemalloc
from collections.abc import Mapping
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker_core.catalog.catalog_errors import PairRefused
from broker_core.catalog.move_or_read_snapshot import load_snapshot
from broker_core.catalog.store.sqlite_catalog import SqliteCatalog
from broker_core.catalog.topic_files.import_file import import_topics
from broker_core.listing.listing import Selection
from broker_core.names import Mode, NamespaceName, TopicName
from broker_core.snapshots import Snapshot
from tests.support.examples import examples
from tests.support.name_changes import name_changes_since

NAMESPACE = NamespaceName("a", "b")
KEYS = ("region", "team")


def bring(catalog: SqliteCatalog, *lines: object) -> None:
    import_topics(catalog, NAMESPACE, io.BytesIO("\n".join(json.dumps(line) for line in lines).encode()))


def load(catalog: SqliteCatalog, mode: Mode = Mode.ALL, keys: tuple[str, ...] = KEYS) -> Snapshot:
    with catalog.reading() as connection:
        return load_snapshot(connection, NAMESPACE, mode, keys)


def names_of(selection: Selection) -> set[str]:
    return set(selection.names.to_pylist())


def brute_force(catalog: SqliteCatalog, mode: Mode, pairs: Mapping[str, str]) -> set[str]:
    with catalog.topics(NAMESPACE) as (_, records):
        return {
            name
            for record in records
            for name in record.names
            if mode.lists(record.name.domain)
            and not record.name.is_system
            and pairs.items() <= record.properties.items()
        }


def test_a_namespace_that_never_was_is_empty(catalog: SqliteCatalog) -> None:
    snapshot = load(catalog)
    assert snapshot.version == catalog.version(NAMESPACE)
    assert len(snapshot.listing) == len(snapshot.select({"region": "eu"})) == 0
    bring(catalog, {"name": "a", "properties": {"region": "eu"}})
    changes = name_changes_since(catalog, snapshot)
    assert len(snapshot.moved(changes).select({"region": "eu"})) == 1


def test_what_is_remembered_or_quick_takes_no_time(
    catalog: SqliteCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    bring(catalog, {"name": "a", "properties": {"region": "eu"}})
    snapshot = load(catalog)
    assert snapshot.is_quick_to_select({"region": "eu"})
    assert names_of(snapshot.select({"region": "eu"})) == {"persistent://a/b/a"}
    monkeypatch.setattr("broker_core.listing.property_values._QUICK", 0)
    assert not snapshot.is_quick_to_select({"region": "us"})
    assert len(snapshot.select({"region": "us"})) == 0
    assert snapshot.is_quick_to_select({"region": "us"}), "it is remembered"


def test_other_properties_do_not_touch_the_listing(catalog: SqliteCatalog) -> None:
    bring(catalog, {"name": "a", "properties": {"x": "1"}})
    snapshot, without = load(catalog), load(catalog, keys=())
    bring(catalog, {"name": "a", "properties": {"x": "2", "region": "eu"}})
    changes = name_changes_since(catalog, snapshot)
    assert without.moved(name_changes_since(catalog, without)).listing is without.listing
    moved = snapshot.moved(changes)
    assert len(moved.select({"region": "eu"})) == 1
    assert len(snapshot.select({"region": "eu"})) == 0, "the old one stays as it was"


def test_few_changes_are_worth_moving(catalog: SqliteCatalog) -> None:
    bring(catalog, *({"name": f"t{number}"} for number in range(100)))
    snapshot = load(catalog)
    bring(catalog, {"name": "x", "partitions": 10})
    changes = name_changes_since(catalog, snapshot)
    assert snapshot.worth_moving(changes)
    bring(catalog, {"name": "y", "partitions": 100})
    changes = name_changes_since(catalog, snapshot)
    assert not snapshot.worth_moving(changes)


def test_what_a_moved_snapshot_will_hold_is_known_too(catalog: SqliteCatalog) -> None:
    bring(catalog, *({"name": f"orders-{number}"} for number in range(1000)))
    old = load(catalog)
    for number in range(20):
        catalog.create(TopicName("persistent", NAMESPACE, f"new-{number}" + "x" * 100))
    changes = name_changes_since(catalog, old)
    expected = old.moved_bytes(changes)
    assert old.nbytes < old.moved(changes).nbytes <= expected <= 2 * old.nbytes + 40 * 1024


def test_what_selecting_takes_is_known_before(catalog: SqliteCatalog) -> None:
    bring(catalog, *({"name": f"t-{n}", "properties": {"region": f"r{n % 3 == 0}"}} for n in range(20_000)))
    snapshot = load(catalog)
    tracemalloc.start()
    try:
        assert not snapshot.select({"region": "rFalse"}).is_slice
        took = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert snapshot.selecting_bytes // 3 < took <= snapshot.selecting_bytes + 10_000


NAMES = [
    "a",
    "a-partition-0",
    "a-partition-1",
    "a!",
    "b",
    "__change_events",
    "￮",
    "😀",
    "a-partition-1-partition-2",
]
ACTS = st.lists(
    st.tuples(
        st.sampled_from(NAMES),
        st.sampled_from(["", "non-persistent://a/b/"]),
        st.none() | st.integers(1, 3),
        st.none() | st.dictionaries(st.sampled_from(KEYS), st.sampled_from(["1", "2"])),
        st.booleans(),
    ),
    max_size=10,
)


@settings(max_examples=examples(15))
@given(ACTS, ACTS, ACTS, st.sampled_from(Mode))
def test_moved_by_the_log_it_equals_one_that_is_read(
    tmp_path_factory: pytest.TempPathFactory,
    first: list[tuple[str, str, int | None, dict[str, str] | None, bool]],
    second: list[tuple[str, str, int | None, dict[str, str] | None, bool]],
    third: list[tuple[str, str, int | None, dict[str, str] | None, bool]],
    mode: Mode,
) -> None:
    with SqliteCatalog(tmp_path_factory.mktemp("s") / "c.sqlite") as catalog:

        def act(acts: list[tuple[str, str, int | None, dict[str, str] | None, bool]]) -> None:
            for name, prefix, partitions, properties, delete in acts:
                topic = TopicName.parse((prefix or "persistent://a/b/") + name)
                if delete and catalog.topic(topic):
                    catalog.delete(topic)
                    continue
                with suppress(PairRefused):
                    bring(
                        catalog, {"name": prefix + name, "partitions": partitions, "properties": properties}
                    )

        act(first)
        snapshot = load(catalog, mode)
        for acts in (second, third):
            act(acts)
            changes = name_changes_since(catalog, snapshot)
            snapshot = snapshot.moved(changes)
            fresh = load(catalog, mode)
            assert snapshot.version == fresh.version
            assert snapshot.listing.names.equals(fresh.listing.names)
            assert snapshot.listing.topics_hash == fresh.listing.topics_hash
            for pairs in ({}, {"region": "1"}, {"region": "1", "team": "2"}):
                expected = brute_force(catalog, mode, pairs)
                assert names_of(snapshot.select(pairs)) == expected
                assert names_of(fresh.select(pairs)) == expected
