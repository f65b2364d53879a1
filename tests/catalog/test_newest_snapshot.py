"""What a snapshot is read by, and that none is of other properties than those that select."""

from __future__ import annotations

from pathlib import Path

from broker_core.catalog import CatalogLister, SqliteCatalog, StoredSnapshots
from broker_core.catalog.newest_snapshot import SnapshotSource
from broker_core.memory.permits import Permits
from broker_core.names import Mode, NamespaceName, TopicName
from broker_core.plugin_api.listing_request import ListingRequest

NAMESPACE = NamespaceName("a", "b")


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
