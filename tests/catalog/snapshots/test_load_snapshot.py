"""Reading a namespace of the file as a snapshot: the same in any blocks, and its bytes are known before."""

from __future__ import annotations

import io
import json
from itertools import product

import pytest

from broker_core.catalog.move_or_read_snapshot import expected_bytes, load_snapshot, only_mode
from broker_core.catalog.store.sqlite_catalog import SqliteCatalog
from broker_core.catalog.topic_files.import_file import import_topics
from broker_core.listing.listing import Selection, data_of
from broker_core.listing.listing_hash import topics_hash
from broker_core.names import Mode, NamespaceName, TopicName
from broker_core.snapshots import Snapshot
from tests.support.chunks import tiny_chunks

NAMESPACE = NamespaceName("a", "b")
KEYS = ("region", "team")


def bring(catalog: SqliteCatalog, *lines: object) -> None:
    import_topics(catalog, NAMESPACE, io.BytesIO("\n".join(json.dumps(line) for line in lines).encode()))


def load(catalog: SqliteCatalog, mode: Mode = Mode.ALL, keys: tuple[str, ...] = KEYS) -> Snapshot:
    with catalog.reading() as connection:
        return load_snapshot(connection, NAMESPACE, mode, keys)


def names_of(selection: Selection) -> set[str]:
    return set(selection.names.to_pylist())


def test_a_namespace_in_memory(catalog: SqliteCatalog) -> None:
    bring(
        catalog,
        {"name": "b", "partitions": 2, "properties": {"region": "eu", "x": "y"}},
        {"name": "a"},
        {"name": "non-persistent://a/b/n", "properties": {"region": "eu"}},
        {"name": "__change_events", "properties": {"region": "eu"}},
    )
    snapshot = load(catalog, Mode.PERSISTENT)
    assert snapshot.version == catalog.version(NAMESPACE)
    assert snapshot.listing.names.to_pylist() == [
        "persistent://a/b/a",
        "persistent://a/b/b-partition-0",
        "persistent://a/b/b-partition-1",
    ]
    assert snapshot.listing.topics_hash == topics_hash(snapshot.listing.names.to_pylist())
    assert names_of(snapshot.select({"region": "eu"})) == {
        "persistent://a/b/b-partition-0",
        "persistent://a/b/b-partition-1",
    }
    assert len(snapshot.select({"region": "us"})) == 0
    assert len(snapshot.select({"region": "eu", "team": "t"})) == 0
    assert len(snapshot.select({})) == 3
    assert len(load(catalog, Mode.NON_PERSISTENT).listing) == 1
    assert len(load(catalog).select({"region": "eu"})) == 3


@pytest.mark.parametrize("block", [1, 3, 7, 100])
def test_it_is_the_same_in_any_blocks(
    catalog: SqliteCatalog, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Partitions of a topic belong behind names of later blocks, and UTF-16 sorts some names otherwise."""
    names = [
        "a",
        "a!",
        "a-b",
        "a-partition",
        "a-q",
        "b",
        "é",
        "\ue000",
        "\uffee",
        "😀",
        "😀-a",
        "__change_events",
    ]
    lines = [
        {"name": name, "partitions": 3 * (index % 3), "properties": {"region": f"r{index % 4}"}}
        for index, name in enumerate(names)
    ]
    bring(catalog, *lines, *({**line, "name": f"non-persistent://a/b/{line['name']}"} for line in lines[:7]))
    whole = load(catalog)
    monkeypatch.setattr("broker_core.catalog.store.load_columns._BLOCK", block)
    with tiny_chunks(120):
        snapshot = load(catalog)
    assert len(data_of(snapshot.listing).chunks) > 8
    assert snapshot.listing.names.equals(whole.listing.names)
    assert snapshot.listing.topics_hash == topics_hash(whole.listing.names.to_pylist())
    for region in ("r0", "r1", "r2", "r3", "r4"):
        pairs = {"region": region}
        assert snapshot.select(pairs).names.equals(whole.select(pairs).names)


def test_which_mode_lists_all(catalog: SqliteCatalog) -> None:
    def only() -> Mode | None:
        with catalog.reading() as connection:
            return only_mode(connection, NAMESPACE)

    assert only() is Mode.PERSISTENT
    bring(catalog, {"name": "non-persistent://a/b/n"})
    assert only() is Mode.NON_PERSISTENT
    bring(catalog, {"name": "a"})
    assert only() is None
    catalog.delete(TopicName.parse("non-persistent://a/b/n"))
    assert only() is Mode.PERSISTENT


@pytest.mark.parametrize("kind", ["plain", "partitioned", "mixed", "properties", "nothing"])
def test_what_a_snapshot_will_hold_is_known_before_it_is_read(catalog: SqliteCatalog, kind: str) -> None:
    lines: list[object] = []
    for number in range({"nothing": 0, "partitioned": 60}.get(kind, 3000)):
        line: dict[str, object] = {"name": f"orders-é-{number}"}
        if kind == "partitioned":
            line["partitions"] = 100
        if kind == "mixed" and number % 3 == 0:
            line["name"] = f"non-persistent://a/b/orders-{number}"
        if kind == "properties":
            line["properties"] = {"region": f"r{number % 7}", "team": f"team-{number}"}
        lines.append(line)
    bring(catalog, *lines)
    for mode, keys in product(Mode, [(), KEYS]):
        snapshot = load(catalog, mode, keys)
        with catalog.reading() as connection:
            expected = expected_bytes(connection, NAMESPACE, mode, keys)
        if kind == "nothing":
            assert expected < 100_000
        else:
            assert snapshot.nbytes <= expected <= 1.5 * snapshot.nbytes + 20_000, (mode, keys)
