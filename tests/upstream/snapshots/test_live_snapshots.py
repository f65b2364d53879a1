"""Live snapshots of any store: one listing for all askers, never older than asked for, within the permits."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from broker_core.errors import Cause, ListingFailed, TooManyRequests
from broker_core.guards import HELD, ShrinkGuard
from broker_core.listing.listing import data_of
from broker_core.listing.listing_hash import topics_hash
from broker_core.memory.permits import Permits
from broker_core.names import Mode, NamespaceName
from broker_core.settings import LimitsSettings, ShrinkGuardSettings
from broker_core.upstream.snapshots import LiveSnapshots, TopicUpdate, live_snapshots
from broker_core.upstream.snapshots.snapshot_log import ViewOfNamespace
from tests.support.chunks import tiny_chunks
from tests.support.clock import time_passes
from tests.support.eventually import eventually
from tests.support.memory_store import NAMES, NAMESPACE, OTHERS, MemoryStore

PLACE = ViewOfNamespace(NAMESPACE, None)


class Scene:
    def __init__(self, room: int = 100_000_000, *, guarded: bool = False) -> None:
        self.store = MemoryStore()
        self.permits = Permits(LimitsSettings(snapshots=room, permit_timeout=0.01))
        self.changed: list[NamespaceName] = []
        self.guard = ShrinkGuard(ShrinkGuardSettings(enabled=guarded))
        self.live = LiveSnapshots(self.store, self.permits, self.changed.append, guard=self.guard)

    @property
    def now(self) -> float:
        return asyncio.get_running_loop().time()

    async def names(
        self, mode: Mode = Mode.PERSISTENT, *, age: float = 60.0, place: ViewOfNamespace = PLACE
    ) -> set[str]:
        snapshot = await self.live.current(place, mode, self.now - age)
        return set(snapshot.listing.names.to_pylist())


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    made = Scene()
    yield made
    await made.live.close()


@pytest.fixture
async def guarded() -> AsyncIterator[Scene]:
    made = Scene(guarded=True)
    yield made
    await made.live.close()


async def test_all_who_ask_share_one_listing(scene: Scene) -> None:
    assert await asyncio.gather(*(scene.names() for _ in range(100))) == [set(NAMES)] * 100
    assert scene.store.asked == [(None, Mode.PERSISTENT, None)]
    kept = scene.live.now(PLACE, Mode.PERSISTENT, scene.now - 60)
    assert kept is not None
    assert kept.snapshot is await scene.live.current(PLACE, Mode.PERSISTENT, scene.now - 60)
    assert len(scene.store.asked) == 1


async def test_a_listing_waits_for_no_file_that_is_read(scene: Scene) -> None:
    loop, ended = asyncio.get_running_loop(), threading.Event()
    with ThreadPoolExecutor(1) as files:
        loop.set_default_executor(files)
        reading = loop.run_in_executor(None, ended.wait)
        try:
            assert await scene.names() == set(NAMES)
            both = ["persistent://t/n/one", "persistent://t/n/two"]
            scene.store.names[Mode.PERSISTENT] = [*NAMES, *both]
            assert await scene.live.move(PLACE, [TopicUpdate(both, [], topics_hash([*NAMES, *both]))])
        finally:
            ended.set()
            await reading


async def test_what_is_too_old_is_compared_by_its_hash(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    await scene.names()
    first = await scene.live.current(PLACE, Mode.PERSISTENT, scene.now - 60)
    time_passes(monkeypatch, 61)
    assert scene.live.now(PLACE, Mode.PERSISTENT, scene.now - 60) is None
    assert await scene.live.current(PLACE, Mode.PERSISTENT, scene.now - 60) is first
    assert scene.store.asked[1:] == [(None, Mode.PERSISTENT, topics_hash(NAMES))]
    assert scene.changed == []


async def test_an_error_in_place_of_what_is_too_old(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    await scene.names()
    scene.store.error = ListingFailed("gone", cause=Cause.UPSTREAM)
    assert await scene.names() == set(NAMES), "it is young enough"
    time_passes(monkeypatch, 61)
    with pytest.raises(ListingFailed, match="gone"):
        await scene.names()
    scene.store.error = None
    time_passes(monkeypatch, 2)
    assert await scene.names() == set(NAMES)


async def test_a_change_costs_one_chunk(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    with tiny_chunks(4096):
        await scene.names()
        before = await scene.live.current(PLACE, Mode.PERSISTENT, scene.now - 60)
        scene.store.names[Mode.PERSISTENT] = [*NAMES[:-1], "persistent://t/n/topic-02500-b"]
        time_passes(monkeypatch, 61)
        assert await scene.names() == set(scene.store.names[Mode.PERSISTENT])
        after = await scene.live.current(PLACE, Mode.PERSISTENT, scene.now - 60)
    old, new = data_of(before.listing).chunks, data_of(after.listing).chunks
    assert len(old) > 10
    assert len([chunk for chunk in new if chunk not in old]) <= 3
    assert scene.changed == [NAMESPACE]
    assert after.version.number > before.version.number
    assert after.version.catalog_id == before.version.catalog_id


async def test_a_listing_that_began_before_is_not_that_of_after(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.store.gate.clear()
    early = asyncio.create_task(scene.names())
    await eventually(lambda: len(scene.store.asked) == 1)
    time_passes(monkeypatch, 5)
    scene.store.names[Mode.PERSISTENT] = NAMES[:10]
    late = [asyncio.create_task(scene.names(age=0)) for _ in range(20)]
    scene.store.gate.set()
    assert await early == set(NAMES)
    assert await asyncio.gather(*late) == [set(NAMES[:10])] * 20
    assert len(scene.store.asked) == 2, "those who came later share the next one"


async def test_a_failed_listing_that_began_before_fails_nobody_who_came_later(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.store.gate.clear()
    scene.store.error = ListingFailed("gone", cause=Cause.UPSTREAM)
    early = asyncio.create_task(scene.names())
    await eventually(lambda: len(scene.store.asked) == 1)
    time_passes(monkeypatch, 5)
    late = asyncio.create_task(scene.names(age=0))
    await asyncio.sleep(0)
    scene.store.error = None
    scene.store.gate.set()
    with pytest.raises(ListingFailed, match="gone"):
        await early
    assert await late == set(NAMES)


async def test_no_two_listings_begin_within_a_second(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_snapshots, "_PAUSE", 1.0)
    await scene.names()
    waiting = asyncio.create_task(scene.names(age=0))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert len(scene.store.asked) == 1
    time_passes(monkeypatch, 1)
    assert await waiting == set(NAMES)
    assert len(scene.store.asked) == 2


async def test_all_topics_are_both_domains(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    assert await scene.names(Mode.ALL) == {*NAMES, *OTHERS}
    kept = scene.live.now(PLACE, Mode.ALL, scene.now - 60)
    assert kept is not None
    assert kept.snapshot.listing.topics_hash == topics_hash([*NAMES, *OTHERS])
    assert scene.live.now(PLACE, Mode.ALL, scene.now - 60) is kept
    assert len(scene.store.asked) == 2
    scene.store.names[Mode.NON_PERSISTENT] = []
    time_passes(monkeypatch, 61)
    assert await scene.names(Mode.ALL) == set(NAMES)
    assert await scene.names(Mode.NON_PERSISTENT) == set()


async def test_a_topic_of_another_namespace_is_an_error(scene: Scene) -> None:
    scene.store.names[Mode.PERSISTENT] = ["persistent://t/other/topic"]
    with pytest.raises(ListingFailed, match="bad topic"):
        await scene.names()


async def test_views_share_nothing(scene: Scene) -> None:
    await scene.names(place=ViewOfNamespace(NAMESPACE, "one"))
    scene.store.names[Mode.PERSISTENT] = NAMES[:1]
    assert await scene.names(place=ViewOfNamespace(NAMESPACE, "two")) == set(NAMES[:1])
    assert await scene.names(place=ViewOfNamespace(NAMESPACE, "one")) == set(NAMES)


async def test_the_least_used_makes_room() -> None:
    scene = Scene(1_200_000)
    try:
        for view in "abcdef":
            await scene.names(place=ViewOfNamespace(NAMESPACE, view))
        assert 0 < len(scene.live) < 6
        assert scene.permits.snapshots.acquired <= 1_200_000
        assert scene.live.now(ViewOfNamespace(NAMESPACE, "f"), Mode.PERSISTENT, 0) is not None
        assert scene.live.now(ViewOfNamespace(NAMESPACE, "a"), Mode.PERSISTENT, 0) is None
        scene.store.asked.clear()
        assert await scene.names(place=ViewOfNamespace(NAMESPACE, "a")) == set(NAMES)
        assert scene.store.asked == [("a", Mode.PERSISTENT, None)], (
            "nothing is known of what is not in memory"
        )
    finally:
        await scene.live.close()
    gc.collect()
    await eventually(lambda: not scene.permits.snapshots.acquired)


async def test_what_does_not_fit_is_given_and_not_kept() -> None:
    scene = Scene(400_000)  # and a quarter of it for what is not kept
    try:
        with pytest.raises(TooManyRequests, match="snapshot memory"):
            held = await scene.permits.unkept.acquire(100_000)
            await scene.names()
        held.release()
        scene.store.names[Mode.PERSISTENT] = NAMES[:200]
        assert len(await scene.names(place=ViewOfNamespace(NAMESPACE, "small"))) == 200
    finally:
        await scene.live.close()


def deletions(names: list[str], size: int) -> list[TopicUpdate]:
    """Updates of a watch that delete these names from ``NAMES``, so many at a time."""
    rest = sorted(set(NAMES) - set(names))
    return [
        TopicUpdate([], names[at : at + size], topics_hash([*rest, *names[at + size :]]))
        for at in range(0, len(names), size)
    ]


async def test_an_update_of_many_deletions_is_no_word_about_each(guarded: Scene) -> None:
    """A broker whose metadata session was lost sends the difference of a new listing as one update."""
    gone = NAMES[:4000]
    await guarded.names()
    assert not await guarded.live.move(PLACE, deletions(gone, 2000))
    assert not await guarded.live.move(PLACE, deletions(gone, 4000))
    guarded.store.names[Mode.PERSISTENT] = NAMES[4000:]
    with pytest.raises(ListingFailed) as failed:
        await guarded.names(age=-1)
    assert failed.value.reason == HELD
    assert len(guarded.guard.held()) == 1


async def test_deletions_one_by_one_are_meant(guarded: Scene) -> None:
    gone = NAMES[:20]
    guarded.store.names[Mode.PERSISTENT] = NAMES[:30]
    await guarded.names()
    rest = NAMES[20:30]
    updates = [TopicUpdate([], [name], topics_hash([*rest, *gone[at + 1 :]])) for at, name in enumerate(gone)]
    assert await guarded.live.move(PLACE, updates)
    assert await guarded.names() == set(rest)
    assert not guarded.guard.held()


async def test_non_persistent_topics_that_are_unloaded_are_no_loss(guarded: Scene) -> None:
    guarded.store.names[Mode.NON_PERSISTENT] = [f"non-persistent://t/n/{number}" for number in range(30)]
    assert len(await guarded.names(Mode.ALL)) == len(NAMES) + 30
    guarded.store.names[Mode.NON_PERSISTENT] = []
    assert not await guarded.names(Mode.NON_PERSISTENT, age=-1)
    assert await guarded.names(Mode.ALL, age=-1) == set(NAMES)
