"""The snapshot cache: for any sequence of questions, the counted memory is the real memory."""

from __future__ import annotations

import gc
import uuid
from collections import OrderedDict
from collections.abc import Iterator
from datetime import UTC, datetime
from random import Random
from weakref import WeakKeyDictionary

import pytest

from broker_core.change_log import CatalogVersion, Change, Changes, Operation
from broker_core.listing.listing import Listing, data_of
from broker_core.memory.permits import Permits
from broker_core.names import NON_PERSISTENT, PERSISTENT, Mode, NamespaceName, TopicName
from broker_core.names.listed_names import NOTHING, PLAIN
from broker_core.settings import LimitsSettings
from broker_core.snapshots import CachedSnapshot, Snapshot, SnapshotCache
from tests.support.chunks import tiny_chunks
from tests.support.name_changes import name_changes_of
from tests.support.narrowed import present

ONE = NamespaceName("t", "one")
TWO = NamespaceName("t", "two")


def snapshot(namespace: NamespaceName = ONE, topics: int = 1000, version: int = 1) -> Snapshot:
    names = [f"persistent://{namespace}/topic-{number:05d}" for number in range(topics)]
    return Snapshot(CatalogVersion("id", version), Listing.from_names(namespace, Mode.PERSISTENT, names))


SIZE = snapshot().nbytes


class Made:
    def __init__(self, room_for: float, *, heap: float = 1.5) -> None:
        limits = LimitsSettings(
            snapshots=int(room_for * SIZE), heap_permits=int(heap * SIZE), permit_timeout=0.01
        )
        permits = Permits(limits)
        self.budget, self.leases, self.heap = permits.snapshots, permits.leases, permits.heap
        self.kept = SnapshotCache[NamespaceName, None](permits)

    async def keep(self, made: Snapshot, mode: Mode = Mode.PERSISTENT) -> bool:
        """Whether it is kept."""
        key: tuple[NamespaceName, Mode] = (made.listing.namespace, mode)
        permit = await self.kept.acquire(key, made.nbytes)
        self.kept.keep(key, made, 1, permit)
        found = self.kept.get(key)
        return found is not None and found.snapshot is made

    @property
    def counted(self) -> tuple[int, int]:
        """Bytes in the budget, and besides."""
        gc.collect()
        self.leases.settle()
        return self.budget.acquired, self.kept.unkept.acquired


@pytest.fixture
def made() -> Iterator[Made]:
    made = Made(2.5)
    yield made
    made.kept.drop_all()
    assert made.counted == (0, 0)


async def test_what_is_kept_is_counted_once_whatever_it_is_kept_for(made: Made) -> None:
    one = snapshot()
    assert await made.keep(one)
    assert made.counted == (SIZE, 0)
    made.kept.keep((ONE, Mode.ALL), one, 2, None)
    assert made.kept.get((ONE, Mode.ALL)) is not None
    assert made.counted == (SIZE, 0)
    assert made.kept.known(ONE) == [one]
    made.kept.let_go((ONE, Mode.ALL))  # with the other one, which has the same listing
    assert len(made.kept) == 0
    assert made.counted == (SIZE, 0), "somebody has it still"


async def test_it_is_counted_how_often_a_namespace_was_asked_for_over_its_versions(made: Made) -> None:
    one = snapshot()
    await made.keep(one)
    made.kept.keep((ONE, Mode.ALL), one, 2, None)
    for mode, count in ((Mode.PERSISTENT, 3), (Mode.ALL, 4)):
        kept = present(made.kept.get((ONE, mode)))
        kept.requests += count
    assert made.kept.requests(ONE, one.listing) == 7
    assert made.kept.snapshots() == [one, one]
    assert made.kept.room == int(1.5 * SIZE)
    two = snapshot(version=2)
    await made.keep(two)
    assert made.kept.requests(ONE, two.listing) == 3
    assert made.kept.requests(ONE, one.listing) == 0


async def test_where_there_is_room_what_is_kept_is_not_looked_through(
    made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of fifty thousand namespaces that took longer than to read one of them."""

    class Unseen(OrderedDict[tuple[NamespaceName, Mode], CachedSnapshot[None]]):
        def __iter__(self) -> Iterator[tuple[NamespaceName, Mode]]:
            raise AssertionError("all that is kept was looked through")

    with monkeypatch.context() as patched:
        patched.setattr(made.kept, "_kept", Unseen())
        assert await made.keep(snapshot(ONE))
        assert await made.keep(snapshot(TWO))
        made.kept.let_go((ONE, Mode.PERSISTENT))
        made.kept.let_go((TWO, Mode.PERSISTENT))


async def test_the_newer_one_takes_the_place_of_the_older(made: Made) -> None:
    for version in range(1, 6):
        assert await made.keep(snapshot(version=version))
        assert made.counted == (SIZE, 0)


async def test_an_older_one_in_use_counts_as_memory_of_requests_if_there_is_no_room_for_both() -> None:
    made = Made(1.5, heap=3.5)
    older: Snapshot | None = snapshot()
    assert older is not None
    assert await made.keep(older)
    for version in (2, 3):
        assert await made.keep(snapshot(version=version))
        assert made.counted == (SIZE, 0)
        assert made.heap.acquired == SIZE
    del older
    assert made.counted == (SIZE, 0)
    assert made.heap.acquired == 0
    made.kept.drop_all()


async def test_half_of_the_memory_of_requests_stays_free_of_older_ones() -> None:
    made = Made(1.5, heap=3.5)
    in_use = [snapshot(), snapshot(version=2)]
    assert await made.keep(in_use[0])
    assert await made.keep(in_use[1])
    assert not await made.keep(snapshot(version=3))
    assert made.counted == (SIZE, 0)
    assert made.heap.acquired == SIZE
    del in_use
    assert made.counted == (0, 0)
    assert made.heap.acquired == 0


async def test_the_same_listing_at_another_version_goes_on_remembering(made: Made) -> None:
    """A snapshot after changes of properties that do not select."""
    one = snapshot()
    await made.keep(one)
    listing = one.listing
    room = data_of(listing).memo.limit
    assert await made.keep(Snapshot(CatalogVersion("id", 2), listing))
    assert data_of(listing).memo.limit == room
    assert made.counted == (SIZE, 0)


async def test_what_does_not_fit_is_shared_while_somebody_has_it(made: Made) -> None:
    large: Snapshot | None = snapshot(topics=4000)
    assert large is not None
    assert not await made.keep(large)
    assert made.counted == (0, made.kept.unkept.maximum)
    (found,) = made.kept.known(ONE)
    assert found.listing is large.listing
    assert found.version == large.version
    del found, large
    assert made.counted == (0, 0)
    assert made.kept.known(ONE) == []


async def test_one_that_is_shared_is_kept_when_there_is_room(made: Made) -> None:
    others = present(made.budget.try_acquire(2 * SIZE))
    one = snapshot()
    assert not await made.keep(one)
    made.kept.keep((ONE, Mode.PERSISTENT), one, 2, None)
    assert made.kept.get((ONE, Mode.PERSISTENT)) is None
    others.release()
    made.kept.keep((ONE, Mode.PERSISTENT), one, 2, None)
    assert made.kept.get((ONE, Mode.PERSISTENT)) is not None
    assert made.counted == (SIZE, 0)


async def test_others_make_room_but_none_of_the_same_namespace(made: Made) -> None:
    first, second = snapshot(TWO), snapshot(ONE, topics=900)
    await made.keep(first)
    await made.keep(second)
    del first
    assert await made.keep(snapshot(ONE, version=2), Mode.ALL)
    assert made.kept.get((TWO, Mode.PERSISTENT)) is None
    assert made.kept.get((ONE, Mode.PERSISTENT)) is not None


async def test_as_many_make_room_as_it_takes() -> None:
    made = Made(3.5)
    others = [NamespaceName("t", name) for name in ("a", "b", "c")]
    for other in others:
        assert await made.keep(snapshot(other))
    permit = await made.kept.acquire((ONE, Mode.PERSISTENT), 2 * SIZE)
    assert permit.budget is made.budget
    assert [made.kept.get((other, Mode.PERSISTENT)) is None for other in others] == [True, True, False]
    assert made.counted == (2 * SIZE + snapshot(others[2]).nbytes, 0)
    permit.release()


async def test_permits_are_changed_to_the_true_size_of_what_is_not_kept_too(made: Made) -> None:
    others = made.budget.try_acquire(made.budget.maximum)
    one = snapshot(topics=100)
    permit = await made.kept.acquire((ONE, Mode.PERSISTENT), 2 * one.nbytes)
    made.kept.keep((ONE, Mode.PERSISTENT), one, 1, permit)
    assert made.counted[1] == one.nbytes
    present(others).release()


# -- listings of several chunks


def all_domains(topics: int = 1000) -> Snapshot:
    names = [
        f"{domain}://{ONE}/topic-{n:05d}"
        for domain in ("persistent", "non-persistent")
        for n in range(topics)
    ]
    return Snapshot(CatalogVersion("id", 1), Listing.from_names(ONE, Mode.ALL, names))


def changed(old: Snapshot, name: str, domain: str = PERSISTENT) -> Snapshot:
    """One topic more."""
    since = old.version
    version = CatalogVersion(since.catalog_id, since.number + 1)
    change = Change(
        version.number,
        Operation.CREATE,
        TopicName(domain, old.listing.namespace, name),
        uuid.uuid4(),
        NOTHING,
        PLAIN,
        {},
        {},
        datetime.fromtimestamp(0, UTC),
    )
    return old.moved(name_changes_of(old.listing.namespace, Changes(since, version, (change,))))


@pytest.fixture
def tiny() -> Iterator[None]:
    with tiny_chunks(2000):
        yield


@pytest.mark.usefixtures("tiny")
async def test_a_changed_listing_takes_permits_for_its_new_chunks_alone() -> None:
    made = Made(20)
    one = snapshot()
    assert len(data_of(one.listing).chunks) > 10
    assert await made.keep(one)
    assert made.counted == (one.nbytes, 0)
    two = changed(one, "topic-00100x")
    new = set(data_of(two.listing).chunks) - set(data_of(one.listing).chunks)
    pinned: Snapshot | None = one
    del one
    assert await made.keep(two)
    assert len(new) == 1
    own = data_of(two.listing).own_bytes
    assert pinned is not None
    assert made.counted == (pinned.nbytes + sum(chunk.nbytes for chunk in new) + own, 0), (
        "with what is pinned"
    )
    del pinned
    assert made.counted == (two.nbytes, 0)
    made.kept.drop_all()
    assert made.counted == (two.nbytes, 0)
    new.clear()
    del two
    assert made.counted == (0, 0)


async def test_a_chunk_that_was_alone_and_is_shared_has_permits_of_its_own() -> None:
    """Alone it has them by its listing, which goes."""
    made = Made(20)
    names = [f"persistent://{ONE}/topic-{number:05d}" for number in range(1000)]
    one = Snapshot(CatalogVersion("id", 1), Listing.from_names(ONE, Mode.ALL, names))
    await made.keep(one, Mode.ALL)
    two = changed(one, "first", NON_PERSISTENT)
    assert data_of(two.listing).chunks[1:] == data_of(one.listing).chunks
    await made.keep(two, Mode.ALL)
    del one
    assert made.counted == (two.nbytes, 0)
    made.kept.drop_all()
    del two
    assert made.counted == (0, 0)


@pytest.mark.usefixtures("tiny")
async def test_what_a_listing_that_is_pinned_shares_is_counted_until_it_goes() -> None:
    made = Made(20)
    one = snapshot()
    size = one.nbytes
    await made.keep(one)
    pinned = one.listing.range(0, 1)
    two = changed(one, "topic-00100x")
    del one
    await made.keep(two)
    del two
    made.kept.drop_all()
    assert made.counted == (size, 0), "chunks of both, and those of the pinned one alone"
    del pinned
    assert made.counted == (0, 0)


@pytest.mark.usefixtures("tiny")
async def test_a_listing_of_one_domain_shares_the_chunks_of_all() -> None:
    made = Made(20)
    everything = all_domains()
    await made.keep(everything, Mode.ALL)
    part = present(everything.in_mode(Mode.PERSISTENT))
    assert part.listing.names.to_pylist() == snapshot().listing.names.to_pylist()
    assert part.listing.topics_hash == snapshot().listing.topics_hash
    assert await made.keep(part)
    own = data_of(part.listing).own_bytes
    assert made.counted == (everything.nbytes + own, 0)
    made.kept.let_go((ONE, Mode.ALL))
    total = everything.nbytes
    del everything
    assert made.counted == (part.nbytes, 0)
    assert part.nbytes < total
    made.kept.drop_all()
    del part
    assert made.counted == (0, 0)


def test_which_modes_are_a_part_of_another() -> None:
    one, everything = snapshot(), all_domains(3)
    assert one.in_mode(Mode.PERSISTENT) is one
    assert one.in_mode(Mode.ALL) is None
    assert one.in_mode(Mode.NON_PERSISTENT) is None
    others = present(everything.in_mode(Mode.NON_PERSISTENT))
    assert len(others.listing) == 3
    assert others.listing.mode is Mode.NON_PERSISTENT


@pytest.mark.usefixtures("tiny")
async def test_what_was_not_kept_is_kept_whole_where_there_is_room_again() -> None:
    made = Made(8)
    others = made.budget.try_acquire(made.budget.maximum)
    one = snapshot(topics=300)
    assert not await made.keep(one)
    assert made.counted == (made.budget.maximum, one.nbytes)
    two = changed(one, "topic-00100x")
    del one
    present(others).release()
    assert await made.keep(two)
    assert made.counted == (two.nbytes, 0)


@pytest.mark.usefixtures("tiny")
async def test_room_is_made_by_what_really_becomes_free() -> None:
    """The least used snapshot is pinned by a client, so that the next one goes too."""
    made = Made(3.2 * snapshot(topics=900).nbytes / SIZE)
    others = [NamespaceName("t", name) for name in ("a", "b", "c")]
    for other in others:
        assert await made.keep(snapshot(other, topics=900))
    kept = present(made.kept.get((others[0], Mode.PERSISTENT)))
    pinned = kept.snapshot.listing
    del kept
    one = snapshot(topics=900)
    assert await made.keep(one)
    assert [made.kept.get((other, Mode.PERSISTENT)) is None for other in others] == [True, True, False]
    assert made.counted[0] <= made.budget.maximum
    del pinned


@pytest.mark.usefixtures("tiny")
async def test_nobody_goes_for_what_does_not_fit_anyway() -> None:
    made = Made(4)
    client = made.budget.try_acquire(2 * SIZE)
    await made.keep(snapshot(TWO, topics=500))
    assert not await made.keep(snapshot(topics=3000))
    assert made.kept.get((TWO, Mode.PERSISTENT)) is not None
    present(client).release()


@pytest.mark.usefixtures("tiny")
async def test_after_many_changes_all_that_is_counted_is_in_memory() -> None:
    made = Made(8)
    random = Random(5)
    current = snapshot(topics=600)
    pinned: list[Listing] = []
    own: WeakKeyDictionary[Listing, int] = (
        WeakKeyDictionary()
    )  # what was remembered goes when it is kept no more
    for number in range(150):
        own[current.listing] = data_of(current.listing).own_bytes
        await made.keep(current)
        if random.random() < 0.1:
            pinned.append(current.listing)
        if pinned and random.random() < 0.1:
            pinned.pop(random.randrange(len(pinned)))
        if random.random() < 0.05:
            made.kept.drop_all()
        current = changed(current, f"topic-{random.randrange(600):05d}-{number}")
        # All chunks are counted once, whoever has them.
        kept = made.kept.get((ONE, Mode.PERSISTENT))
        listings = {*pinned} | ({kept.snapshot.listing} if kept is not None else set())
        del kept
        chunks = {chunk for listing in listings for chunk in data_of(listing).chunks}
        shared = {chunk for chunk in data_of(current.listing).chunks if chunk in made.leases}
        counted = sum(chunk.nbytes for chunk in chunks | shared)
        counted += sum(own[listing] for listing in listings)
        del chunks, shared, listings
        assert sum(made.counted) == counted
    pinned.clear()
    made.kept.drop_all()
    del current
    assert made.counted == (0, 0)


async def test_nothing_is_nothing_to_keep(made: Made) -> None:
    nothing = Snapshot.of_nothing("id", ONE, Mode.PERSISTENT)
    assert not await made.keep(nothing)
    assert made.counted == (0, 0)
