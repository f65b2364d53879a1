"""Restarts of a lister with stored snapshots: whatever lies in the folder, it lists what the catalogue has."""

from __future__ import annotations

import asyncio
import io
import os
import random
import shutil
import sqlite3
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from broker_core.catalog import move_or_read_snapshot, warm_start
from broker_core.catalog.catalog_lister import CatalogLister
from broker_core.catalog.store.change_log_writer import LogBounds
from broker_core.catalog.store.sqlite_catalog import SqliteCatalog
from broker_core.catalog.topic_files.import_file import import_topics
from broker_core.listing.listing import Listing, Selection
from broker_core.memory.permits import Permits
from broker_core.names import Mode, NamespaceName, TopicName
from broker_core.plugin_api.listing_request import ListingRequest
from broker_core.settings import LimitsSettings
from broker_core.snapshots.stored import stored_snapshots
from broker_core.snapshots.stored.snapshot_folder import SnapshotFolder, folder_beside
from broker_core.snapshots.stored.snapshot_writer import SnapshotWriter
from broker_core.snapshots.stored.stored_snapshots import StoredSnapshots
from tests.catalog.filled import NAMESPACE, bring
from tests.snapshots.stored.damages import DAMAGES
from tests.support.chunks import tiny_chunks
from tests.support.eventually import eventually
from tests.support.examples import examples
from tests.support.narrowed import of_type, present
from tests.support.small_disk import grow, small_disk

KEYS = ("region",)
OTHER = NamespaceName("a", "other")


@pytest.fixture(autouse=True, scope="module")
def _small() -> Iterator[None]:
    """A few hundred topics are worth a folder, and many chunks."""
    with pytest.MonkeyPatch.context() as patch, tiny_chunks(4096):
        for module in (stored_snapshots, warm_start):
            patch.setattr(module, "LEAST_TOPICS", 10)
        # However slow the machine is, all is stored at the end, and once.
        patch.setattr(warm_start, "SnapshotWriter", partial(SnapshotWriter, soon=3600.0))
        yield


@asynccontextmanager
async def started(
    catalog: SqliteCatalog,
    *,
    keys: tuple[str, ...] = KEYS,
    warm: bool = True,
    room: int = 10**8,
    left_free: int = 0,
) -> AsyncIterator[tuple[CatalogLister, StoredSnapshots]]:
    """A server's lister from its start to its end."""
    folder = SnapshotFolder(folder_beside(catalog.path), left_free=left_free)
    stored = StoredSnapshots(folder, property_keys=keys)
    permits = Permits(LimitsSettings(snapshots=room))
    lister = CatalogLister(catalog, permits, property_keys=keys, stored=stored if warm else None)
    try:
        yield lister, stored
        await lister.store(10)
    finally:
        lister.close()
        permits.close()


Answers = dict[tuple[str, str], tuple[list[str], str]]


async def answers(lister: CatalogLister, namespace: NamespaceName = NAMESPACE) -> Answers:
    """What is listed in each mode, of all topics and of those of a region: names and hash."""
    found: Answers = {}
    for mode in Mode:
        for properties in ({}, {"region": "eu"}):
            request = ListingRequest(namespace, mode, properties=properties)
            topics = (await lister.list_topics(request)).topics
            assert isinstance(topics, Listing | Selection)
            found[mode.name, str(properties)] = topics.names.to_pylist(), topics.topics_hash
            del topics  # it may be all that there is room for
    return found


async def truth(catalog: SqliteCatalog, namespace: NamespaceName = NAMESPACE) -> Answers:
    """The listing from the catalogue alone."""
    async with started(catalog, warm=False) as (lister, _):
        return await answers(lister, namespace)


def fill(catalog: SqliteCatalog, count: int = 300) -> None:
    bring(
        catalog,
        *(f"persistent://a/b/orders-{number:05d}" for number in range(count)),
        *({"name": f"é\U0001f600-{number}", "properties": {"region": "eu"}} for number in range(count // 3)),
        *({"name": f"parts-{number}", "partitions": 12} for number in range(count // 30)),
        *(f"non-persistent://a/b/live-{number}" for number in range(count // 3)),
        "__change_events",
    )


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A catalogue with its folder, as a server has left them."""
    folder = tmp_path_factory.mktemp("made")
    with SqliteCatalog(folder / "c.sqlite") as catalog:
        fill(catalog)

        async def run() -> None:
            async with started(catalog) as (lister, _):
                await answers(lister)

        asyncio.run(run())
    return folder


@pytest.fixture
def catalog(made: Path, tmp_path: Path) -> Iterator[SqliteCatalog]:
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    with SqliteCatalog(tmp_path / "c.sqlite") as opened:
        yield opened


@pytest.fixture
def unread(monkeypatch: pytest.MonkeyPatch) -> None:
    """No namespace is read from the catalogue."""

    def no(*_: object) -> None:
        raise AssertionError("read from the catalogue")

    monkeypatch.setattr(move_or_read_snapshot, "load_snapshot", no)


def counted(stored: StoredSnapshots) -> Mapping[str, int]:
    return {event: count for event, count in stored.counts.read().items() if count}


async def test_a_restart_reads_what_was_stored(
    catalog: SqliteCatalog, request: pytest.FixtureRequest
) -> None:
    expected = await truth(catalog)
    request.getfixturevalue("unread")
    async with started(catalog) as (lister, stored):
        assert await answers(lister) == expected
        assert counted(stored)["read"] == 3
        assert "refused" not in counted(stored)


async def test_what_changed_since_is_there(catalog: SqliteCatalog, request: pytest.FixtureRequest) -> None:
    catalog.create(TopicName.parse("persistent://a/b/orders-00007-new"), properties={"region": "eu"})
    catalog.delete(TopicName.parse("persistent://a/b/orders-00100"))
    catalog.set_properties(TopicName.parse("persistent://a/b/orders-00101"), {"region": "eu"})
    catalog.create(TopicName.parse("non-persistent://a/b/live-new"), partitions=3)
    expected = await truth(catalog)
    request.getfixturevalue("unread")
    async with started(catalog) as (lister, _):
        assert await answers(lister) == expected
    async with started(catalog) as (lister, stored):  # and that was stored in its turn
        assert await answers(lister) == expected
        assert counted(stored)["read"] == 3


async def test_a_disk_that_fills_while_it_is_stored_costs_the_next_start_alone(tmp_path: Path) -> None:
    with SqliteCatalog(tmp_path / "c.sqlite") as catalog:
        folder = folder_beside(catalog.path)
        with small_disk(folder, "128k"):
            fill(catalog, 60)
            async with started(catalog) as (lister, _):
                await answers(lister)
            fill(catalog, 3000)
            # Of three modes, in this run; read is what the one before has written.
            for written, read in ((0, 0), (0, 0), (3, 0), (3, 3)):
                if written:
                    grow(folder, "64m")
                async with started(catalog, left_free=-(2**40)) as (lister, stored):
                    assert await answers(lister) == await truth(catalog)
                assert counted(stored).get("written", 0) == written
                assert counted(stored).get("read", 0) == read
                assert "refused" not in counted(stored)
                assert not [*folder.glob(".*")], "nothing is torn"


@pytest.mark.parametrize("seed", range(examples(2)))
async def test_any_changes_between_many_restarts(catalog: SqliteCatalog, seed: int) -> None:
    chosen = random.Random(seed)
    for _ in range(8):
        for _ in range(chosen.choice([0, 1, 3, 30])):
            name = TopicName.parse(
                f"{chosen.choice(['persistent', 'non-persistent'])}://a/b/orders-{chosen.randrange(400):05d}"
            )
            there = catalog.topic(name) is not None
            if there and chosen.random() < 0.5:
                catalog.delete(name)
            elif there:
                catalog.set_properties(name, {"region": chosen.choice(["eu", "us"])})
            else:
                catalog.create(name, partitions=chosen.choice([0, 0, 2]))
        async with started(catalog) as (lister, stored):
            assert await answers(lister) == await truth(catalog)
            assert "refused" not in counted(stored)


async def test_what_the_log_does_not_lead_from_is_stale(catalog: SqliteCatalog) -> None:
    catalog.log_bounds = LogBounds(rows=1)
    for number in range(3):
        catalog.create(TopicName.parse(f"persistent://a/b/new-{number}"))
    async with started(catalog) as (lister, stored):
        assert await answers(lister) == await truth(catalog)
        assert counted(stored)["stale"] == 3
        assert "read" not in counted(stored)


async def test_much_that_changed_is_read_anew(catalog: SqliteCatalog) -> None:
    bring(catalog, *(f"new-{number}" for number in range(300)))
    async with started(catalog) as (lister, stored):
        assert await answers(lister) == await truth(catalog)
        assert counted(stored)["stale"] >= 1


@pytest.mark.parametrize("again", [0, 1, 2, 3])
async def test_a_restored_catalogue_does_not_meet_its_future(catalog: SqliteCatalog, again: int) -> None:
    """After two more versions and a restore, it goes on to as many others, with the same numbers."""
    copy = catalog.path.with_name("copy")
    with sqlite3.connect(copy) as target, sqlite3.connect(catalog.path) as source:
        source.backup(target)
    target.close()
    source.close()
    for number in range(2):
        catalog.create(TopicName.parse(f"persistent://a/b/lost-{number}"))
    async with started(catalog) as (lister, _):
        assert "persistent://a/b/lost-1" in (await answers(lister))["ALL", "{}"][0]
    catalog.close()
    for end in ("-wal", "-shm"):
        catalog.path.with_name(catalog.path.name + end).unlink(missing_ok=True)
    copy.replace(catalog.path)
    with SqliteCatalog(catalog.path) as restored:
        for number in range(again):
            restored.create(TopicName.parse(f"persistent://a/b/other-{number}"))
        async with started(restored) as (lister, stored):
            found = await answers(lister)
            assert found == await truth(restored)
            assert not any("lost" in name for name in found["ALL", "{}"][0])
            assert counted(stored)["stale"] == 3


async def everything(catalog: SqliteCatalog) -> tuple[list[str], str, Mapping[str, int]]:
    """The names and the hash of all topics as a server lists them once, and what it counts of its folder."""
    async with started(catalog) as (lister, stored):
        found = of_type((await lister.list_topics(ListingRequest(NAMESPACE))).topics, Listing)
        return found.names.to_pylist(), found.topics_hash, counted(stored)


@pytest.fixture(scope="module")
def of_one_mode(made: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str], str]:
    """A catalogue with a folder of one mode, so that it is clear what is damaged, and its names and their hash."""
    folder = tmp_path_factory.mktemp("one")
    shutil.copytree(made, folder, dirs_exist_ok=True)
    with SqliteCatalog(folder / "c.sqlite") as catalog:
        for path in folder_beside(catalog.path).iterdir():
            path.unlink()
        names, topics_hash, _ = asyncio.run(everything(catalog))
        *again, counts = asyncio.run(everything(catalog))
    assert again == [names, topics_hash]
    assert "read" in counts
    return folder, names, topics_hash


@pytest.mark.parametrize("damage", DAMAGES)
async def test_whatever_happened_to_the_folder_the_answers_are_right(
    of_one_mode: tuple[Path, list[str], str], tmp_path: Path, damage: str
) -> None:
    folder, *expected = of_one_mode
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    with SqliteCatalog(tmp_path / "c.sqlite") as catalog:
        DAMAGES[damage](folder_beside(catalog.path))
        *found, counts = await everything(catalog)
        assert found == expected
        assert "read" not in counts
        *found, _ = await everything(catalog)  # what was stored anew
        assert found == expected
    assert len(DAMAGES) > 50


async def test_a_folder_that_is_removed_while_the_server_runs(catalog: SqliteCatalog) -> None:
    expected = await truth(catalog)
    async with started(catalog) as (lister, stored):
        await lister.list_topics(ListingRequest(NAMESPACE))
        shutil.rmtree(folder_beside(catalog.path))
        assert await answers(lister) == expected
        await lister.store(10)
        assert counted(stored)["written"] == 3
        assert "write_failed" not in counted(stored)


async def test_a_full_disk_is_in_nobodys_way(catalog: SqliteCatalog) -> None:
    shutil.rmtree(folder_beside(catalog.path))
    expected = await truth(catalog)
    async with started(catalog) as (lister, stored):
        stored._folder._left_free = 2**60
        assert await answers(lister) == expected
        await lister.store(10)
        assert counted(stored) == {"write_failed": 3}


async def test_servers_of_one_catalogue_share_the_folder(catalog: SqliteCatalog) -> None:
    shutil.rmtree(folder_beside(catalog.path))
    expected = await truth(catalog)
    async with started(catalog) as (one, _), started(catalog) as (two, stored):
        assert await answers(one) == expected
        assert await answers(two) == expected
        await asyncio.gather(one.store(10), two.store(10))
        assert "write_failed" not in counted(stored)
    async with started(catalog) as (lister, stored):
        assert await answers(lister) == expected
        assert counted(stored)["read"] == 3


async def test_another_catalogue_in_its_place_is_listed(catalog: SqliteCatalog, tmp_path: Path) -> None:
    with SqliteCatalog(tmp_path / "new.sqlite") as new:
        bring(new, *(f"other-{number}" for number in range(50)))
    async with started(catalog) as (lister, stored):
        await answers(lister)
        for end in ("-wal", "-shm"):
            new.path.with_name(new.path.name + end).unlink(missing_ok=True)
        os.replace(new.path, catalog.path)  # noqa: PTH105
        assert (await answers(lister)) == (await truth(catalog))
        assert "refused" not in counted(stored)


async def test_what_does_not_fit_is_listed_all_the_same(catalog: SqliteCatalog) -> None:
    expected = await truth(catalog)
    async with started(catalog, room=1000) as (lister, _):
        assert await answers(lister) == expected


async def test_small_namespaces_are_not_looked_for(tmp_path: Path) -> None:
    with SqliteCatalog(tmp_path / "c.sqlite") as catalog:
        bring(catalog, "one", "two")
        async with started(catalog) as (lister, stored):
            assert len((await answers(lister))["ALL", "{}"][0]) == 2
        assert not folder_beside(catalog.path).exists()
        assert not counted(stored)


# -- before the first request


async def test_the_namespaces_asked_most_are_read_as_far_as_there_is_room(
    tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        move_or_read_snapshot, "_FEW", 1
    )  # else these are read by the event loop, not from the folder
    namespaces = [NamespaceName("a", name) for name in ("rare", "often", "huge")]
    with SqliteCatalog(tmp_path / "c.sqlite") as catalog:
        for namespace, count in zip(namespaces, (100, 100, 5000), strict=True):
            lines = "\n".join(f"topic-{number:040d}" for number in range(count)).encode()
            import_topics(catalog, namespace, io.BytesIO(lines))
        async with started(catalog) as (lister, _):
            for namespace, asked in zip(namespaces, (1, 5, 3), strict=True):
                for _ in range(asked):
                    await lister.list_topics(ListingRequest(namespace))
        request.getfixturevalue("unread")
        async with started(catalog, room=150_000) as (lister, stored):
            await lister.warm_up(30)
            assert counted(stored)["read"] == 2
            assert [lister.list_now(ListingRequest(each)) is not None for each in namespaces] == [
                True,
                True,
                False,
            ]


async def test_reading_before_the_first_request_ends_in_time(
    catalog: SqliteCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with started(catalog) as (lister, stored):
        await lister.warm_up(0)
        assert not counted(stored)
        hangs = asyncio.Event()

        async def hanging(_: object) -> None:
            await hangs.wait()

        monkeypatch.setattr(lister, "_snapshot", hanging)
        with capture_logs() as logs:
            await asyncio.wait_for(lister.warm_up(0.05), 30)
        assert "catalog.warm_within is over" in {line["event"].partition(":")[0] for line in logs}


async def test_without_a_folder_nothing_is_read_or_stored(catalog: SqliteCatalog) -> None:
    async with started(catalog, warm=False) as (lister, _):
        await lister.warm_up(10)
        assert lister.list_now(ListingRequest(NAMESPACE)) is None


async def test_what_is_read_is_stored_soon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with SqliteCatalog(tmp_path / "c.sqlite") as catalog:
        fill(catalog)
        async with started(catalog) as (lister, stored):
            present(lister._by.warm)._writer._soon = 0.0
            await lister.list_topics(ListingRequest(NAMESPACE))
            await eventually(lambda: counted(stored) == {"written": 1})
