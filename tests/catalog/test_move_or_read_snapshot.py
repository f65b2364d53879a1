"""What a snapshot is read by, and that none is of other properties than those that select."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker_core.catalog import CatalogLister, SqliteCatalog
from broker_core.catalog.move_or_read_snapshot import SnapshotSource
from broker_core.listing.listing import Listing, Selection
from broker_core.memory.permits import Permits
from broker_core.names import Mode, TopicName
from broker_core.plugin_api.listing_request import ListingRequest
from broker_core.snapshots import Snapshot, StoredSnapshots
from tests.catalog.listers import MB, NAMESPACE, QUESTION, bring, kept_bytes, names_of, permits_of, spaces
from tests.support.narrowed import of_type, present


async def test_other_properties_read_anew_also_what_is_under_way(tmp_path: Path) -> None:
    with SqliteCatalog(tmp_path / "c.sqlite") as catalog:
        for number in range(10):
            catalog.create(TopicName.parse(f"persistent://a/b/t{number}"), properties={"x": str(number % 2)})
        stored = StoredSnapshots.beside(catalog.path)
        lister = CatalogLister(catalog, Permits(), stored=stored)
        request = ListingRequest(NAMESPACE, properties={"x": "1"})
        for keys, count in (((), 10), (("x",), 5), (("y",), 10), (("x", "y"), 5)):
            lister.select_by(keys)
            assert lister.depends_on == {f"property:{key}" for key in keys}
            under_way = lister.list_topics(request)
            assert len((await under_way).topics) == count
        await lister.store(5.0)
        lister.close()


def test_a_snapshot_of_other_properties_is_not_used(tmp_path: Path) -> None:
    with SqliteCatalog(tmp_path / "c.sqlite") as catalog:
        catalog.create(TopicName.parse("persistent://a/b/t"), properties={"x": "1"})
        key = (NAMESPACE, Mode.PERSISTENT)
        made = SnapshotSource(catalog, (), None).read_or_move(key, [], None, [])
        assert not isinstance(made, int)
        source = SnapshotSource(catalog, ("x",), None)
        assert not source.has_read(made)
        again = source.read_or_move(key, [made], None, [])
        assert not isinstance(again, int)
        assert source.has_read(again)


@pytest.fixture
def no_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is read in a thread fails."""

    def refused(*_arguments: object) -> Snapshot:
        raise AssertionError("it is read in a thread")

    monkeypatch.setattr(SnapshotSource, "read_or_move", refused)


@pytest.mark.parametrize("mode", Mode)
async def test_few_topics_are_read_at_once_and_as_in_a_thread(catalog: SqliteCatalog, mode: Mode) -> None:
    bring(
        catalog,
        *({"name": f"t{number}", "properties": {"x": str(number % 3)}} for number in range(100)),
        {"name": "parts", "partitions": 25},
        {"name": "non-persistent://a/b/passing", "properties": {"x": "1"}},
        {"name": "__change_events"},
    )
    permits = permits_of(MB)
    lister = CatalogLister(catalog, permits, property_keys=("x",))
    question = ListingRequest(NAMESPACE, mode)
    now = present(lister.list_now(question))
    assert isinstance(now.topics, Listing)
    read = SnapshotSource(catalog, ("x",), None).read_or_move((NAMESPACE, mode), [], None, [])
    assert not isinstance(read, int)
    assert now.topics.names.equals(read.listing.names)
    assert now.topics.topics_hash == read.listing.topics_hash
    assert now.version == str(read.version)
    assert permits.snapshots.acquired == kept_bytes(lister)
    selected = present(lister.list_now(ListingRequest(NAMESPACE, mode, properties={"x": "1"})))
    assert of_type(selected.topics, Selection).names.equals(read.select({"x": "1"}).names)
    lister.close()


async def test_a_change_of_few_topics_is_seen(catalog: SqliteCatalog, no_threads: None) -> None:
    bring(catalog, {"name": "a"})
    lister = CatalogLister(catalog, Permits())
    assert names_of(await lister.list_topics(QUESTION)) == ["a"]
    bring(catalog, {"name": "b"})
    assert names_of(await lister.list_topics(QUESTION)) == ["a", "b"]
    lister.close()


async def test_least_used_of_many_small_namespaces_make_room(
    catalog: SqliteCatalog, no_threads: None
) -> None:
    questions = spaces(catalog, 12)
    permits = permits_of(100_000)
    lister = CatalogLister(catalog, permits)
    for _ in range(2):
        for question in questions:
            assert lister.list_now(question) is not None
            assert permits.snapshots.acquired <= 100_000
    assert permits.snapshots.acquired > 50_000
    lister.close()


@pytest.mark.parametrize("topics", [{"count": 129, "partitions": 0}, {"count": 2, "partitions": 1000}])
async def test_more_topics_are_left_to_a_thread(catalog: SqliteCatalog, topics: dict[str, int]) -> None:
    bring(
        catalog,
        *({"name": f"t{number}", "partitions": topics["partitions"]} for number in range(topics["count"])),
    )
    permits = permits_of(MB)
    lister = CatalogLister(catalog, permits)
    assert lister.list_now(QUESTION) is None
    assert permits.snapshots.acquired == 0
    assert len((await lister.list_topics(QUESTION)).topics) == topics["count"] * (topics["partitions"] or 1)
    lister.close()
