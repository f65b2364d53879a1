"""A small move is made on the event loop, and is what reading anew makes; all that is more is left to others."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from broker_core.catalog.move_or_read_snapshot import SnapshotUpdates, load_snapshot
from broker_core.catalog.snapshots.recent_changes import KeptSnapshots
from broker_core.catalog.store.file_watch import FileWatch
from broker_core.catalog.store.sqlite_catalog import SqliteCatalog
from broker_core.listing.chunks.chunk import Chunk
from broker_core.listing.chunks.chunk_splice import spliced_chunk
from broker_core.listing.listing import data_of
from broker_core.memory.permits import Permits
from broker_core.names import Mode, NamespaceName
from broker_core.snapshots import Snapshot
from tests.catalog.listers import MB, NAMESPACE, bring, topic
from tests.support.chunks import tiny_chunks
from tests.support.narrowed import present

KEYS = ("region",)


class Kept:
    """Snapshots of a catalogue that are kept, and what moves them."""

    def __init__(self, catalog: SqliteCatalog) -> None:
        self.catalog = catalog
        permits = Permits()
        self.cache = KeptSnapshots(permits)
        self.watch = FileWatch(catalog)
        self.moves = SnapshotUpdates(self.cache, self.watch)

    def read(self, mode: Mode, *, as_mode: Mode | None = None) -> Snapshot:
        """What is in the file now, read anew; with ``as_mode`` only this domain, which may be all there is."""
        with self.catalog.reading() as connection:
            return load_snapshot(connection, NAMESPACE, mode if as_mode is None else as_mode, KEYS)

    def keep(self, mode: Mode, *, as_mode: Mode | None = None) -> Snapshot:
        """Read it, and keep it."""
        snapshot = self.read(mode, as_mode=as_mode)
        self.cache.keep((NAMESPACE, mode), snapshot, self.watch.state, None)
        return snapshot

    async def moved(self, mode: Mode = Mode.PERSISTENT, room: int = 8 * MB) -> Snapshot | None:
        return await self.moves.moved((NAMESPACE, mode), room)


@pytest.fixture
def kept(catalog: SqliteCatalog) -> Iterator[Kept]:
    bring(catalog, *({"name": f"t{number:03}", "properties": {"region": "eu"}} for number in range(300)))
    made = Kept(catalog)
    yield made
    made.watch.close()


def assert_same(moved: Snapshot | None, read: Snapshot) -> None:
    assert moved is not None
    assert moved.version == read.version
    assert moved.listing.names.equals(read.listing.names)
    assert moved.listing.topics_hash == read.listing.topics_hash
    for region in ("eu", "us"):
        found = moved.select({"region": region}).names
        assert found.equals(read.select({"region": region}).names)


async def test_a_few_changes_are_made_by_the_loop(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[threading.Thread] = []

    def noted(*arguments: object) -> Chunk:
        threads.append(threading.current_thread())
        return spliced_chunk(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr("broker_core.listing.changes.version_splice.spliced_chunk", noted)
    with tiny_chunks(2000):
        before = kept.keep(Mode.PERSISTENT)
        assert before.listing.topics_hash
        kept.catalog.create(topic("t000x"))
        kept.catalog.create(topic("t150x"), properties={"region": "us"})
        kept.catalog.delete(topic("t290"))
        kept.catalog.set_properties(topic("t100"), {"region": "us"})
        moved = await kept.moved()
        assert_same(moved, kept.read(Mode.PERSISTENT))
    assert threads == [threading.current_thread()] * 3
    shared = set(data_of(before.listing).chunks) & set(data_of(present(moved).listing).chunks)
    assert len(shared) >= len(data_of(before.listing).chunks) - 4


async def test_no_change_of_the_namespace_is_a_move_too(kept: Kept) -> None:
    before = kept.keep(Mode.PERSISTENT)
    bring(kept.catalog, {"name": "persistent://a/other/x"}, namespace=NamespaceName("a", "other"))
    moved = present(await kept.moved())
    assert moved.listing is before.listing


async def test_what_was_not_hashed_yet_is_hashed_in_a_thread(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept.catalog.set_properties(topic("t000"), {"note": "x" * 10})
    bring(kept.catalog, *({"name": f"u{number:03}-{'x' * 500}"} for number in range(300)))
    handed: list[object] = []
    loop = asyncio.get_running_loop()
    in_executor = loop.run_in_executor

    def counted(*arguments: Any) -> Any:
        handed.append(arguments)
        return in_executor(*arguments)

    monkeypatch.setattr(loop, "run_in_executor", counted)
    for hands in (1, 0):  # then its blocks are known
        before = kept.keep(Mode.PERSISTENT)
        if not hands:
            _ = data_of(before.listing).chunks[0].blocks
        kept.catalog.create(topic(f"t-{hands}"))
        assert_same(await kept.moved(), kept.read(Mode.PERSISTENT))
        assert len(handed) == hands
        handed.clear()


async def test_more_is_left_to_others(kept: Kept) -> None:
    assert await kept.moved() is None, "nothing is kept"
    kept.keep(Mode.PERSISTENT)
    kept.catalog.create(topic("a"))
    assert await kept.moved(room=1000) is None
    assert await kept.moved() is not None
    kept.catalog.create(topic("b"), partitions=100)
    assert await kept.moved() is None
    kept.keep(Mode.PERSISTENT)
    for number in range(17):
        assert await kept.moved() is not None
        kept.catalog.create(topic(f"c{number}"))
    assert await kept.moved() is None


@pytest.mark.parametrize("of_properties", [False, True])
async def test_long_texts_are_left_to_others(kept: Kept, of_properties: bool) -> None:
    """Of names and of properties together: a name of 30 kB is no more work than a hundred usual ones."""
    for count, is_small in ((1, True), (2, False)):
        kept.keep(Mode.PERSISTENT)
        for number in range(count):
            long = f"{'x' * 20_000}-{count}-{number}"
            if of_properties:
                kept.catalog.create(topic(long[-30:]), properties={"note": long})
            else:
                kept.catalog.create(topic(long))
        moved = await kept.moved()
        assert (moved is not None) is is_small
        if is_small:
            assert_same(moved, kept.read(Mode.PERSISTENT))


async def test_one_is_moved_at_a_time(kept: Kept) -> None:
    kept.keep(Mode.PERSISTENT)
    kept.catalog.create(topic("a"))
    first = asyncio.create_task(kept.moved())
    await asyncio.sleep(0)
    assert not first.done()
    assert await kept.moved() is None
    assert_same(await first, kept.read(Mode.PERSISTENT))
    assert await kept.moved() is not None


async def test_a_move_that_is_cancelled_is_in_nobodys_way(kept: Kept) -> None:
    kept.keep(Mode.PERSISTENT)
    kept.catalog.create(topic("a"))
    first = asyncio.create_task(kept.moved())
    await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    assert_same(await kept.moved(), kept.read(Mode.PERSISTENT))


async def test_chunks_of_a_newer_snapshot_are_to_be_shared(kept: Kept) -> None:
    bring(kept.catalog, {"name": "non-persistent://a/b/n"})
    kept.keep(Mode.PERSISTENT)
    kept.keep(Mode.ALL)
    kept.catalog.create(topic("a"))
    assert await kept.moved() is not None
    kept.keep(Mode.ALL)
    assert await kept.moved() is None
    assert await kept.moved(Mode.ALL) is not None


async def test_the_listing_of_one_domain_may_be_all_no_more(kept: Kept) -> None:
    kept.keep(Mode.ALL, as_mode=Mode.PERSISTENT)
    kept.catalog.create(topic("a"))
    assert_same(await kept.moved(Mode.ALL), kept.read(Mode.ALL))
    kept.catalog.create(topic("a", "non-persistent"))
    assert await kept.moved(Mode.ALL) is None
    kept.keep(Mode.ALL)
    kept.catalog.create(topic("b", "non-persistent"))
    assert_same(await kept.moved(Mode.ALL), kept.read(Mode.ALL))
