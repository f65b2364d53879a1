"""The snapshot cache: for any sequence of questions, the counted memory is the real memory."""

from __future__ import annotations

import gc
from collections import OrderedDict
from collections.abc import Iterator

import pytest

from broker_core.catalog.snapshots.snapshot import Snapshot
from broker_core.catalog.snapshots.snapshot_cache import CachedSnapshot, SnapshotCache, SnapshotKey
from broker_core.change_log import CatalogVersion
from broker_core.listing.listing import Listing, data_of
from broker_core.memory.permits import Permits
from broker_core.names import Mode, NamespaceName
from broker_core.settings import LimitsSettings

ONE = NamespaceName("t", "one")
TWO = NamespaceName("t", "two")


def snapshot(namespace: NamespaceName = ONE, topics: int = 1000, version: int = 1) -> Snapshot:
    names = [f"persistent://{namespace}/topic-{number:05d}" for number in range(topics)]
    return Snapshot(CatalogVersion("id", version), Listing.from_names(namespace, Mode.PERSISTENT, names))


SIZE = snapshot().nbytes


class Made:
    def __init__(self, room_for: float) -> None:
        permits = Permits(LimitsSettings(snapshots=int(room_for * SIZE), permit_timeout=0.01))
        self.budget, self.leases = permits.snapshots, permits.leases
        self.kept = SnapshotCache(self.budget, permits.unkept, self.leases)

    async def keep(self, made: Snapshot, mode: Mode = Mode.PERSISTENT) -> bool:
        """Whether it is kept."""
        key: SnapshotKey = (made.listing.namespace, mode)
        permit = await self.kept.permit_for(key, made.nbytes)
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
        kept = made.kept.get((ONE, mode))
        assert kept is not None
        kept.asked += count
    assert made.kept.asked(one.listing) == 7
    assert made.kept.snapshots() == [one, one]
    assert made.kept.room == int(1.5 * SIZE)
    two = snapshot(version=2)
    await made.keep(two)
    assert made.kept.asked(two.listing) == 3
    assert made.kept.asked(one.listing) == 0


async def test_where_there_is_room_what_is_kept_is_not_looked_through(
    made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of fifty thousand namespaces that took longer than to read one of them."""

    class Unseen(OrderedDict[SnapshotKey, CachedSnapshot]):
        def __iter__(self) -> Iterator[SnapshotKey]:
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


async def test_the_same_listing_at_another_version_goes_on_remembering(made: Made) -> None:
    """As where properties changed that do not select."""
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
    others = made.budget.try_acquire(2 * SIZE)
    assert others is not None
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
    permit = await made.kept.permit_for((ONE, Mode.PERSISTENT), 2 * SIZE)
    assert permit.budget is made.budget
    assert [made.kept.get((other, Mode.PERSISTENT)) is None for other in others] == [True, True, False]
    assert made.counted == (2 * SIZE + snapshot(others[2]).nbytes, 0)
    permit.release()


async def test_permits_are_changed_to_the_true_size_of_what_is_not_kept_too(made: Made) -> None:
    others = made.budget.try_acquire(made.budget.maximum)
    one = snapshot(topics=100)
    permit = await made.kept.permit_for((ONE, Mode.PERSISTENT), 2 * one.nbytes)
    made.kept.keep((ONE, Mode.PERSISTENT), one, 1, permit)
    assert made.counted[1] == one.nbytes
    assert others is not None
    others.release()


async def test_nothing_is_nothing_to_keep(made: Made) -> None:
    nothing = Snapshot.of_nothing("id", ONE, Mode.PERSISTENT)
    assert not await made.keep(nothing)
    assert made.counted == (0, 0)
