"""Watches at a cluster: a recorded broker's updates, faults of each kind, and the snapshot equal to the cluster's."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import cache
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest

from broker_core.access.asker import Asker
from broker_core.errors import Cause, ListingFailed
from broker_core.listing.listing_hash import topics_hash
from broker_core.memory.permits import Permits
from broker_core.names import Mode, NamespaceName
from broker_core.plugin_api.listing_request import ListingRequest
from broker_core.settings import UpstreamSettings, UpstreamSnapshotsSettings
from broker_core.upstream.pulsar import UpstreamCluster, UpstreamOptions
from broker_core.upstream.snapshots import (
    LiveSnapshots,
    StoreListing,
    TopicUpdate,
    View,
    live_snapshots,
    namespace_watch,
)
from broker_core.upstream.snapshots.namespace_watch import NamespaceWatches
from broker_core.upstream.snapshots.snapshot_log import ViewOfNamespace
from tests.support.clock import AGES
from tests.support.eventually import eventually
from tests.support.fake_cluster import FakeCluster
from tests.support.memory_store import NAMES, NAMESPACE, MemoryStore
from tests.support.tcp_proxy import TcpProxy
from tests.support.vectors import VECTORS

PLACE = ViewOfNamespace(NAMESPACE, None)


@cache
def recorded() -> tuple[list[str], list[TopicUpdate]]:
    """The topics that a watcher of a real broker began with, and all updates that it was sent."""
    steps = json.loads((VECTORS / "pulsar-4.2.4-watch.json").read_text(encoding="utf-8"))
    first: list[str] = []
    updates: list[TopicUpdate] = []
    for step in steps:
        for frame in step.get("received", ()):
            if frame["type"] == 65 and frame["watcher_id"] == 7 and not first:
                first = frame["topics"]
            elif frame["type"] == 66 and frame["watcher_id"] == 7:
                updates.append(TopicUpdate(frame["new"], frame["deleted"], frame["topics_hash"]))
    assert len(updates) > 25
    return first, updates


async def replayed(updates: Sequence[TopicUpdate], *, together: int, first: int = 0) -> tuple[bool, set[str]]:
    """Whether all updates fitted, the ``first`` of them at once, and the topics after those that did."""
    begun, _ = recorded()
    store = MemoryStore(NamespaceName("public", "watch"))
    store.names[Mode.PERSISTENT] = list(begun)
    live = LiveSnapshots(store, Permits(), lambda _namespace: None)
    place = ViewOfNamespace(NamespaceName("public", "watch"), None)
    await live.current(place, Mode.PERSISTENT, 0.0)
    ends = [*range(first, len(updates), together), len(updates)]
    fits = not first or await live.move(place, updates[:first])
    for start, end in pairwise(ends):
        fits = fits and await live.move(place, updates[start:end])
    snapshot = await live.current(place, Mode.PERSISTENT, 0.0)
    assert len(store.asked) == 1
    assert live.known_hash(place) == snapshot.listing.topics_hash
    await live.close()
    return fits, set(snapshot.listing.names.to_pylist())


@pytest.mark.parametrize("together", [1, 2, 7, 1000])
async def test_the_updates_of_a_real_broker(together: int) -> None:
    first, updates = recorded()
    expected = set(first)
    for update in updates:
        expected = (expected | set(update.added)) - set(update.removed)
    assert await replayed(updates, together=together) == (True, expected)


async def test_one_update_lost_doubled_or_swapped_does_not_fit() -> None:
    _, updates = recorded()
    for number in range(len(updates) - 1):
        before, own, behind = updates[:number], updates[number], updates[number + 1 :]
        fits, _ = await replayed([*before, *behind], together=1, first=number)
        assert not fits, f"update {number} was lost"
        fits, _ = await replayed([*before, behind[0], own, *behind[1:]], together=1, first=number)
        assert not fits, f"update {number} was swapped"
    # The same again changes nothing: its hash is the one of the snapshot.
    expected = await replayed(updates, together=1)
    for number in range(len(updates)):
        doubled = [*updates[: number + 1], *updates[number:]]
        assert await replayed(doubled, together=1, first=number) == expected
        fits, topics = await replayed(doubled, together=len(doubled))
        assert not fits or topics == expected[1]


class Scene:
    """A gateway's snapshots before a cluster that offers watches."""

    def __init__(self, fake: FakeCluster, cluster: UpstreamCluster) -> None:
        self.fake = fake
        self.cluster = cluster
        self.changed: list[NamespaceName] = []
        cluster.on_change.append(self.changed.append)
        assert cluster.snapshots is not None
        self.lister = cluster.snapshots
        self.asker = Asker()

    async def names(self) -> set[str]:
        result = await self.lister.list_topics(ListingRequest(NAMESPACE, asker=self.asker))
        topics: Any = result.topics
        return set(topics.names.to_pylist())

    async def follows(self) -> None:
        """Wait until what is given is what the cluster has."""
        await eventually(self._is_equal)

    async def _is_equal(self) -> bool:
        return await self.names() == set(self.fake.listed(str(NAMESPACE), 0))

    async def watched(self) -> None:
        await self.names()
        await eventually(lambda: self.lister.watches.open == 1)

    @property
    def listings(self) -> int:
        return len(self.fake.asked)


@asynccontextmanager
async def scene_behind(fake: FakeCluster, url: str, **options: Any) -> AsyncIterator[Scene]:
    fake.topics[str(NAMESPACE)] = list(NAMES[:200])
    settings = UpstreamSettings(service_url=url, snapshots=UpstreamSnapshotsSettings(mode="auto"))
    cluster = UpstreamCluster(
        UpstreamOptions(settings, first_backoff=0.005, longest_backoff=0.02, **options), permits=Permits()
    )
    await cluster.start()
    try:
        yield Scene(fake, cluster)
    finally:
        await cluster.stop()


@pytest.fixture
async def scene(request: pytest.FixtureRequest) -> AsyncIterator[Scene]:
    flags = getattr(request, "param", {"topic_watchers": True, "reconcile": True})
    async with FakeCluster(**flags) as fake, scene_behind(fake, fake.url) as made:
        yield made


async def test_changes_are_seen_without_a_listing(scene: Scene) -> None:
    await scene.watched()
    before = scene.listings
    scene.fake.change(str(NAMESPACE), new=["persistent://t/n/new"], deleted=NAMES[:2])
    await scene.follows()
    assert scene.changed
    assert scene.listings == before
    assert scene.lister.notes(ListingRequest(NAMESPACE, asker=scene.asker)).snapshot is not None
    scene.fake.change(str(NAMESPACE), new=[f"persistent://t/n/many-{number}" for number in range(500)])
    await scene.follows()
    assert scene.listings == before


@pytest.mark.parametrize(
    "scene", [{"topic_watchers": False}, {"topic_watchers": True, "reconcile": False}], indirect=True
)
async def test_brokers_without_watches_or_with_other_hashes_are_not_watched(scene: Scene) -> None:
    assert await scene.names() == set(NAMES[:200])
    await eventually(lambda: not scene.lister.watches._watches)
    assert not scene.fake.watchers
    assert await scene.names() == set(NAMES[:200])
    assert not scene.lister.watches._watches, "it is not tried for each question"


def in_place_of_two(*sent: Sequence[int | Callable[[bytes], bytes]]) -> Callable[[bytes], Sequence[bytes]]:
    """A fault: what is sent when the first update is due, and when the second is; numbers are of updates."""
    due: list[bytes] = []

    def fault(frame: bytes) -> Sequence[bytes]:
        due.append(frame)
        if len(due) > len(sent):
            return [frame]
        return [due[each] if isinstance(each, int) else each(frame) for each in sent[len(due) - 1]]

    return fault


@pytest.mark.parametrize(
    "sent",
    [
        ([], [1]),
        ([0, 0], [1]),
        ([], [1, 0]),
        ([0], [1, 0]),
        ([lambda frame: frame.replace(b"/new", b"/old")], [1]),
        ([lambda frame: frame[:-8] + b"01234567"], [1]),
    ],
    ids=["dropped", "doubled", "swapped", "repeated later", "another topic", "another hash"],
)
async def test_a_wrong_update_ends_in_the_truth(scene: Scene, sent: Any) -> None:
    await scene.watched()
    scene.fake.fault = in_place_of_two(*sent)
    for name in ("new", "second"):
        scene.fake.change(str(NAMESPACE), new=[f"persistent://t/n/{name}"])
    await scene.follows()
    # And it is watched on.
    before = scene.listings
    await eventually(lambda: scene.lister.watches.open == 1)
    scene.fake.change(str(NAMESPACE), deleted=NAMES[:1])
    await scene.follows()
    assert scene.listings <= before + 1


@pytest.mark.parametrize("after", [0, 30], ids=["before an update", "in the middle of one"])
async def test_a_half_open_connection_is_given_up_and_the_cluster_is_compared(after: int) -> None:
    async with (
        FakeCluster(topic_watchers=True, reconcile=True) as fake,
        TcpProxy(lambda: ("127.0.0.1", fake.server.port)) as proxy,
        scene_behind(fake, proxy.url, silence=0.2) as scene,
    ):
        await scene.watched()
        before = await scene.names()
        proxy.swallow(after)
        scene.fake.change(str(NAMESPACE), new=["persistent://t/n/new"], deleted=NAMES[:1])
        now = set(fake.listed(str(NAMESPACE), 0))

        async def is_followed() -> bool:
            names = await scene.names()
            assert names in (before, now), "something between"
            return names == now

        await eventually(is_followed)
        await eventually(lambda: scene.lister.watches.open == 1)


async def test_a_cluster_that_swallows_all_is_an_error_once_the_snapshot_is_old_and_then_the_truth() -> None:
    async with (
        FakeCluster(topic_watchers=True, reconcile=True) as fake,
        TcpProxy(lambda: ("127.0.0.1", fake.server.port)) as proxy,
        scene_behind(fake, proxy.url, silence=0.2, listing_timeout=0.5, connect_timeout=0.2) as scene,
    ):
        await scene.watched()
        before = await scene.names()
        proxy.swallow()
        proxy.swallows_new = True
        fake.change(str(NAMESPACE), deleted=NAMES[:50])
        clock = scene.lister.snapshots.clock
        scene.lister.snapshots.clock = lambda: clock() + 55
        assert await scene.names() == before
        scene.lister.snapshots.clock = lambda: clock() + 120
        for _ in range(3):
            with pytest.raises(ListingFailed):
                await scene.names()
        proxy.swallows_new = False

        async def is_true() -> bool:
            try:
                names = await scene.names()
            except ListingFailed:
                return False
            assert names == set(fake.listed(str(NAMESPACE), 0))
            return True

        await eventually(is_true)


async def test_a_lost_session_is_opened_again_and_compared(scene: Scene) -> None:
    await scene.watched()
    scene.fake.lose_watchers()
    scene.fake.change(str(NAMESPACE), deleted=NAMES[:50])
    await eventually(lambda: scene.lister.watches.open == 1 and bool(scene.fake.watchers))
    await scene.follows()
    before = scene.listings
    scene.fake.change(str(NAMESPACE), new=["persistent://t/n/new"])
    await scene.follows()
    assert scene.listings == before


async def test_hashes_that_never_fit_end_the_watch(scene: Scene) -> None:
    await scene.watched()
    scene.fake.fault = lambda frame: [frame[:-8] + b"01234567"]
    number = 0

    async def given_up() -> bool:
        nonlocal number
        number += 1
        scene.fake.change(str(NAMESPACE), new=[f"persistent://t/n/new-{number}"])
        await asyncio.sleep(0)
        return not scene.lister.watches._watches

    await eventually(given_up)
    await scene.names()
    assert not scene.lister.watches._watches


async def test_random_changes_and_faults_never_end_in_another_set(scene: Scene) -> None:
    source = random.Random(28)
    await scene.watched()
    scene.fake.fault = lambda frame: [frame] * source.choice((0, 1, 1, 1, 1, 1, 1, 2))
    have = list(NAMES[:200])
    for number in range(150):
        if source.random() < 0.02:
            scene.fake.lose_watchers()
        if have and source.random() < 0.4:
            scene.fake.change(str(NAMESPACE), deleted=[have.pop(source.randrange(len(have)))])
        else:
            have.append(f"persistent://t/n/new-{number}")
            scene.fake.change(str(NAMESPACE), new=have[-1:])
        if number % 10 == 0:
            await asyncio.sleep(0)
    scene.fake.fault = lambda frame: [frame]
    scene.fake.change(str(NAMESPACE), new=["persistent://t/n/last"])
    await scene.follows()


async def test_a_snapshot_that_is_not_in_memory_is_not_moved() -> None:
    live = LiveSnapshots(MemoryStore(), Permits(), lambda _namespace: None)
    assert live.known_hash(PLACE) is None
    assert not await live.move(PLACE, [TopicUpdate([NAMES[0]], [], topics_hash(NAMES[:1]))])
    await live.close()


@pytest.mark.parametrize("together", [False, True])
async def test_a_listing_of_before_does_not_undo_an_update(together: bool) -> None:
    store = MemoryStore()
    live = LiveSnapshots(store, Permits(), lambda _namespace: None)
    await live.current(PLACE, Mode.PERSISTENT, 0.0)
    store.gate.clear()
    store.names[Mode.PERSISTENT] = [*NAMES, "persistent://t/n/one"]
    late = asyncio.create_task(live.current(PLACE, Mode.PERSISTENT, live.clock()))
    await eventually(lambda: len(store.asked) == 2)
    two = [*NAMES, "persistent://t/n/one", "persistent://t/n/two"]
    updates = [
        TopicUpdate(["persistent://t/n/one"], [], topics_hash(two[:-1])),
        TopicUpdate(["persistent://t/n/two"], [], topics_hash(two)),
    ]
    for batch in [updates] if together else [[each] for each in updates]:
        assert await live.move(PLACE, batch)
    store.gate.set()
    assert set((await late).listing.names.to_pylist()) == set(two)
    await live.close()


async def test_a_listing_of_the_middle_of_an_update_is_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_snapshots, "_PAUSE", 0.0)
    store = MemoryStore()
    live = LiveSnapshots(store, Permits(), lambda _namespace: None)
    await live.current(PLACE, Mode.PERSISTENT, 0.0)
    store.gate.clear()
    store.names[Mode.PERSISTENT] = [*NAMES, "persistent://t/n/one"]
    late = asyncio.create_task(live.current(PLACE, Mode.PERSISTENT, live.clock()))
    await eventually(lambda: len(store.asked) == 2)
    both = ["persistent://t/n/one", "persistent://t/n/two"]
    store.names[Mode.PERSISTENT] = [*NAMES, *both]
    assert await live.move(PLACE, [TopicUpdate(both, [], topics_hash([*NAMES, *both]))])
    store.gate.set()
    assert set((await late).listing.names.to_pylist()) == {*NAMES, *both}
    kept = live.now(PLACE, Mode.PERSISTENT, 0.0)
    assert kept is not None
    assert set(kept.snapshot.listing.names.to_pylist()) == {*NAMES, *both}
    assert len(store.asked) == 3
    # A listing that is not older is taken, though updates of several names came: here the third, of a later moment.
    store.names[Mode.PERSISTENT] = list(NAMES)
    last = await live.current(PLACE, Mode.PERSISTENT, live.clock())
    assert set(last.listing.names.to_pylist()) == set(NAMES)
    await live.close()


class LeapingStore(MemoryStore):
    """A store of which the watch tells two names at once while it lists. The listing has one of them, or both and those
    in ``late``.
    """

    live: LiveSnapshots
    leaps = False
    late: tuple[str, ...] = ()

    async def list(self, view: View, namespace: NamespaceName, mode: Mode, *rest: Any) -> StoreListing:
        if not self.leaps:
            return await super().list(view, namespace, mode, *rest)
        before = self.names[mode]
        both = [f"persistent://t/n/{each}-{len(self.asked)}" for each in ("one", "two")]
        self.names[mode] = [*before, *both, *self.late] if self.late else [*before, both[0]]
        listed = await super().list(view, namespace, mode, *rest)
        self.names[mode] = [*before, *both]
        assert await self.live.move(PLACE, [TopicUpdate(both, [], topics_hash(self.names[mode]))])
        return listed


async def test_listings_in_doubt_end(monkeypatch: pytest.MonkeyPatch) -> None:
    store = LeapingStore()
    live = store.live = LiveSnapshots(store, Permits(), lambda _namespace: None)
    await live.current(PLACE, Mode.PERSISTENT, 0.0)

    async def pause(_seconds: float) -> None:
        """What the watch tells between two listings, in place of the time."""
        if store.late and len(store.asked) > 6:
            names = [*store.names[Mode.PERSISTENT], *store.late]
            assert await live.move(PLACE, [TopicUpdate(store.late, [], topics_hash(names))])

    monkeypatch.setattr(live_snapshots, "asyncio", SimpleNamespace(**vars(asyncio) | {"sleep": pause}))
    store.leaps, begun = True, live.clock()
    with pytest.raises(ListingFailed, match="so fast that no listing") as raised:
        await live.current(PLACE, Mode.PERSISTENT, begun)
    assert (raised.value.cause, len(store.asked)) == (Cause.UPSTREAM, 6)
    kept = live.now(PLACE, Mode.PERSISTENT, 0.0)  # what the watch told is there, for whoever may have it
    assert kept is not None
    assert len(kept.snapshot.listing) == len(NAMES) + 10
    assert live.now(PLACE, Mode.PERSISTENT, begun) is None
    # A listing is in doubt no more once the watch has led past it.
    store.late = ("persistent://t/n/late",)
    last = await live.current(PLACE, Mode.PERSISTENT, live.clock())
    assert (len(last.listing), len(store.asked)) == (len(NAMES) + 13, 7)
    await live.close()


class WatchedStore(MemoryStore):
    """A store whose updates a test sends."""

    receiver: Any = None

    async def watch(self, view: View, namespace: NamespaceName, watcher: Any) -> bool:
        self.receiver = watcher
        watcher.began(topics_hash(self.names[Mode.PERSISTENT]))
        await asyncio.Event().wait()
        return True

    def change(self, name: str) -> TopicUpdate:
        """Add a topic; returns the update of it, which comes when the test sends it."""
        self.names[Mode.PERSISTENT].append(f"persistent://t/n/{name}")
        return TopicUpdate(self.names[Mode.PERSISTENT][-1:], [], topics_hash(self.names[Mode.PERSISTENT]))


async def test_updates_of_before_a_listing_are_no_misfits(monkeypatch: pytest.MonkeyPatch) -> None:
    """While topics change fast, a listing has changes whose updates come after it, each time anew."""
    monkeypatch.setattr(live_snapshots, "_PAUSE", 0.0)
    monkeypatch.setattr(namespace_watch, "_LATE", AGES)  # however slow the machine is
    store = WatchedStore()
    store.names[Mode.PERSISTENT] = list(NAMES[:50])
    live = LiveSnapshots(store, Permits(), lambda _namespace: None)
    await live.current(PLACE, Mode.PERSISTENT, 0.0)
    watches = NamespaceWatches(store, live, lambda _place: True)
    watches.ensure(PLACE)
    await eventually(lambda: store.receiver)

    async def moved(update: TopicUpdate) -> None:
        await eventually(lambda: live.known_hash(PLACE) == update.topics_hash)

    store.change("lost")
    late = [store.change(f"late-{number}") for number in range(8)]
    store.receiver.began("")  # the session was lost, and is open again
    await moved(late[-1])
    tried: list[bool] = []
    move = live.move

    async def noted(place: ViewOfNamespace, updates: Sequence[TopicUpdate]) -> bool:
        tried.append(await move(place, updates))
        return tried[-1]

    monkeypatch.setattr(live, "move", noted)
    store.receiver.update(late[0])
    await eventually(lambda: tried)
    after = store.change("after")
    for update in (*late[1:], after):
        store.receiver.update(update)
    await moved(after)
    assert tried == [False, True]
    assert watches.counts == {"updates": 1, "misfits": 1, "lost": 0}
    assert len(store.asked) == 2
    await watches.close()
    await live.close()


async def test_a_store_that_fails_is_watched_again() -> None:
    store = MemoryStore()
    opened = 0

    async def watch(*_arguments: object) -> bool:
        nonlocal opened
        opened += 1
        raise ListingFailed("gone", cause=Cause.UPSTREAM)

    store.watch = watch  # type: ignore[method-assign,assignment]
    live = LiveSnapshots(store, Permits(), lambda _namespace: None)
    await live.current(PLACE, Mode.PERSISTENT, 0.0)
    watches = NamespaceWatches(store, live, lambda _place: False)
    watches.ensure(PLACE)
    watches.ensure(PLACE)
    await eventually(lambda: opened == 2)
    assert watches.counts["lost"] >= 1
    await watches.close()
    await live.close()
