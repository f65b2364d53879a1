"""Restarts of live snapshots with stored parts: the cluster is asked with their hash before anybody gets them."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest

from broker_core.errors import Cause, ListingFailed
from broker_core.guards import HELD, ShrinkGuard
from broker_core.listing.listing import data_of
from broker_core.listing.listing_hash import topics_hash
from broker_core.memory.permits import Permits
from broker_core.names import Mode, NamespaceName
from broker_core.settings import LimitsSettings, ShrinkGuardSettings
from broker_core.snapshots import SnapshotWriter, StoredSnapshots
from broker_core.snapshots.stored import stored_snapshots
from broker_core.snapshots.stored.snapshot_folder import SnapshotFolder
from broker_core.upstream.snapshots import LiveSnapshots, TopicUpdate, View
from broker_core.upstream.snapshots import stored_live_snapshots as module
from broker_core.upstream.snapshots.snapshot_log import ViewOfNamespace
from tests.snapshots.stored.damages import DAMAGES
from tests.support.chunks import tiny_chunks
from tests.support.memory_store import NAMES, NAMESPACE, OTHERS, MemoryStore

PLACE = ViewOfNamespace(NAMESPACE, None)
HASH = topics_hash(NAMES)


@pytest.fixture(autouse=True, scope="module")
def _small() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch, tiny_chunks(8192):
        for each in (stored_snapshots, module):
            patch.setattr(each, "LEAST_TOPICS", 10)
        # However slow the machine is, all is stored at the end, and once.
        patch.setattr(module, "SnapshotWriter", partial(SnapshotWriter, soon=3600.0))
        yield


class Gateway:
    """The live snapshots of one process."""

    def __init__(self, folder: Path, cluster: str = "pulsar://one", room: int = 10**8) -> None:
        self.store = MemoryStore()
        self.permits = Permits(LimitsSettings(snapshots=room, permit_timeout=0.01))
        self.guard = ShrinkGuard(ShrinkGuardSettings())
        self.stored = StoredSnapshots(SnapshotFolder(folder, left_free=0))
        self.changed: list[NamespaceName] = []
        self.live = LiveSnapshots(
            self.store,
            self.permits,
            self.changed.append,
            guard=self.guard,
            stored=(self.stored, cluster),
        )

    async def names(
        self, mode: Mode = Mode.PERSISTENT, *, age: float = 60.0, place: ViewOfNamespace = PLACE
    ) -> list[str]:
        snapshot = await self.live.current(place, mode, self.live.clock() - age)
        return sorted(snapshot.listing.names.to_pylist())

    def counted(self, event: str) -> int:
        return self.stored.counts.read()[event]


@asynccontextmanager
async def started(folder: Path, cluster: str = "pulsar://one", room: int = 10**8) -> AsyncIterator[Gateway]:
    gateway = Gateway(folder, cluster, room)
    yield gateway
    await gateway.live.close()
    gateway.permits.close()


def all_of(folder: Path) -> str:
    return "".join(file.name + file.read_bytes().decode("latin-1") for file in folder.iterdir())


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a gateway has left that listed all topics."""
    folder = tmp_path_factory.mktemp("left") / "stored"

    async def run() -> None:
        async with started(folder) as gateway:
            assert await gateway.names(Mode.ALL) == sorted(NAMES + OTHERS)

    asyncio.run(run())
    return folder


@pytest.fixture
def folder(left: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(left, tmp_path / "stored"))


async def test_a_restart_asks_whether_the_hash_is_still_right(folder: Path) -> None:
    async with started(folder) as gateway:
        assert await gateway.names() == NAMES
        assert gateway.store.asked == [(None, Mode.PERSISTENT, HASH)]
        assert gateway.live.counts == {"unchanged": 1, "changed": 0, "first": 0, "failed": 0}
        assert gateway.counted("read") == 1
        assert gateway.changed == []
        assert await gateway.names(Mode.NON_PERSISTENT) == OTHERS
        assert gateway.store.asked[1:] == [(None, Mode.NON_PERSISTENT, None)], "three are not worth a file"
        before = gateway.permits.snapshots.available
        gateway.live.kept.drop_all()
        assert gateway.permits.snapshots.available >= before, "they had permits"


async def test_nothing_stored_is_given_before_a_comparison(folder: Path) -> None:
    async with started(folder) as gateway:
        gateway.store.error = ListingFailed("gone", cause=Cause.UPSTREAM)
        for age in (0.0, 60.0, 1e12):
            with pytest.raises(ListingFailed, match="gone"):
                await gateway.names(age=age)
            assert gateway.live.now(PLACE, Mode.PERSISTENT, gateway.live.clock() - age) is None
        assert gateway.live.age(PLACE, Mode.PERSISTENT) is None
        gateway.store.error = None
        assert await gateway.names() == NAMES
        assert {known for _, _, known in gateway.store.asked} == {HASH}
        assert gateway.live.age(PLACE, Mode.PERSISTENT) is not None


async def test_what_changed_meanwhile_shares_the_chunks_that_did_not(folder: Path) -> None:
    later = [*NAMES[:100], *NAMES[101:], "persistent://t/n/new"]
    async with started(folder) as gateway:
        gateway.store.names[Mode.PERSISTENT] = later
        assert await gateway.names() == sorted(later)
        assert gateway.live.counts["changed"] == 1
        kept = gateway.live.now(PLACE, Mode.PERSISTENT, 0)
        assert kept is not None
        chunks = len(data_of(kept.snapshot.listing).chunks)
    assert gateway.counted("written") == 1
    assert chunks > 10
    files = len(list(SnapshotFolder(folder).files()))
    assert chunks < files <= chunks + 5, "those of before are there until they are swept"
    async with started(folder) as gateway:
        gateway.store.names[Mode.PERSISTENT] = later
        assert await gateway.names() == sorted(later)
        assert gateway.store.asked == [(None, Mode.PERSISTENT, topics_hash(later))]


async def test_what_a_watch_told_is_stored_with_its_hash(folder: Path) -> None:
    later = [*NAMES, "persistent://t/n/new"]
    async with started(folder) as gateway:
        await gateway.names()
        update = TopicUpdate(later[-1:], (), topics_hash(later))
        assert await gateway.live.move(PLACE, [update])
    async with started(folder) as gateway:
        gateway.store.names[Mode.PERSISTENT] = later
        assert await gateway.names() == sorted(later)
        assert gateway.live.counts["unchanged"] == 1


@pytest.mark.parametrize("name", DAMAGES)
async def test_a_damaged_folder_is_a_reading_of_the_cluster(folder: Path, name: str) -> None:
    DAMAGES[name](folder)
    for names in (NAMES, NAMES[1:]):
        async with started(folder) as gateway:
            gateway.store.names[Mode.PERSISTENT] = names
            assert await gateway.names() == names
            ((_, _, known),) = gateway.store.asked
            # Asked with a hash, all was there that has it.
            assert known in (None, HASH)


async def test_nothing_is_anothers(folder: Path) -> None:
    views: list[View] = ["shared", ("alice", None), ("alice", "bob"), ("alice, None", None), ("bob", "alice")]
    for number, view in enumerate(views):
        async with started(folder) as gateway:
            place = ViewOfNamespace(NAMESPACE, view)
            own = [f"persistent://t/n/{number}-{index}" for index in range(20)]
            gateway.store.names[Mode.PERSISTENT] = own
            assert await gateway.names(place=place) == sorted(own)
            assert gateway.store.asked == [(view, Mode.PERSISTENT, None)], "nobody asked for it before"
    async with started(folder, "pulsar://two") as gateway:
        gateway.store.names[Mode.PERSISTENT] = NAMES[:30]
        assert await gateway.names() == NAMES[:30]
        assert gateway.store.asked == [(None, Mode.PERSISTENT, None)], "it is of another cluster"
    assert "alice" not in all_of(folder)


async def test_what_is_loaded_after_an_eviction_is_compared_too(folder: Path) -> None:
    later = [*NAMES, "persistent://t/n/new"]
    async with started(folder) as gateway:
        gateway.store.names[Mode.PERSISTENT] = later
        assert await gateway.names() == sorted(later)
        log = gateway.live.logs.open(PLACE)
        number = log.number
        gateway.live.kept.drop_all()
        # The folder has what was there before the new topic came.
        gateway.store.names[Mode.PERSISTENT] = NAMES
        assert gateway.live.now(PLACE, Mode.PERSISTENT, 0) is None
        assert await gateway.names() == NAMES
        assert gateway.store.asked[-1] == (None, Mode.PERSISTENT, HASH)
        assert gateway.changed == [NAMESPACE], "those who follow it had a topic more"
        assert log.floor > number, "what went is in no step, so that the log begins again"


async def test_what_has_no_room_is_listed_as_ever(folder: Path) -> None:
    async with started(folder, room=1000) as gateway:
        assert await gateway.names() == NAMES
        assert gateway.store.asked == [(None, Mode.PERSISTENT, None)]
        assert gateway.counted("read") == 0


async def test_a_loss_while_the_gateway_was_down_is_held(folder: Path) -> None:
    async with started(folder) as gateway:
        gateway.guard.check(NAMESPACE, "PERSISTENT for all", len(NAMES))
        gateway.store.names[Mode.PERSISTENT] = NAMES[:100]
        for _ in range(2):
            with pytest.raises(ListingFailed) as held:
                await gateway.names(age=1e12)
            assert held.value.reason == HELD
            await asyncio.sleep(0)
    async with started(folder) as gateway:
        assert await gateway.names() == NAMES, "what is held was not stored"
