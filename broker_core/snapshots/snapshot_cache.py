"""The snapshots in memory: which are kept, which make room for others, and which are served without being kept.

A snapshot has its permits before it is read. The ``snapshots`` budget has them if there is room or the least used
snapshots make some. If clients still read the snapshots that would have to go, or the namespace is larger than the
budget, nobody waits for the budget: the snapshot is read for the present requests and not kept. The budget ``unkept``
is for such snapshots, one at a time if they are larger than it; requests meanwhile share the one in memory.

A follower needs its last answer until it has the difference to the next one. If there is no room for both, the
outdated one counts as memory of requests (``heap``), as far as half of that: else it would be in the way of the newer
one for good.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from typing import Final, Generic, TypeAlias, TypeVar

import structlog

from broker_core.change_log import CatalogVersion
from broker_core.listing import Listing, Selection, data_of
from broker_core.memory import CacheState, Permit, Permits
from broker_core.names import Mode
from broker_core.plugin_api import TopicListingResult
from broker_core.snapshots.snapshot import Snapshot

__all__ = ["CachedSnapshot", "SnapshotCache", "result_of"]

#: The key of snapshots besides the mode: a namespace, and the principal of the listing if that makes a difference.
P = TypeVar("P", bound=Hashable)
#: The known changes around a snapshot.
R = TypeVar("R")
_Key: TypeAlias = tuple[P, Mode]

#: The part of the budget above which a demand first checks whether dropping others would free enough.
_LARGE: Final = 16
#: Namespaces that did not fit, which are remembered so that it is logged once.
_MOST_WARNED: Final = 1000

_log = structlog.get_logger(__name__)


def result_of(topics: Listing | Selection, snapshot: Snapshot) -> TopicListingResult:
    """The answer with these topics of a snapshot."""
    return TopicListingResult.success(topics, version=str(snapshot.version))


class CachedSnapshot(Generic[R]):
    """A snapshot in memory, its answer to a request without properties, and the state of the file at which it was
    current.
    """

    __slots__ = ("recent", "requests", "result", "seen", "snapshot")

    def __init__(self, snapshot: Snapshot, seen: int, requests: int = 0) -> None:
        self.snapshot = snapshot
        self.result = result_of(snapshot.listing, snapshot)
        self.seen = seen
        #: How often it, and its predecessors, were asked for.
        self.requests = requests
        #: The latest changes, if they were asked for: changes that lead to this snapshot, or on from it.
        self.recent: R | None = None


class SnapshotCache(Generic[P, R]):
    """Snapshots by namespace and mode, the least used first to go. For one event loop."""

    def __init__(self, permits: Permits) -> None:
        self._budget = permits.snapshots
        self._heap = permits.heap
        self._leases = permits.leases
        self._kept: OrderedDict[_Key[P], CachedSnapshot[R]] = OrderedDict()
        #: Unkept snapshots, without their listings: of these there are only references.
        self._alive: dict[_Key[P], tuple[weakref.ref[Listing], CatalogVersion, tuple[str, ...]]] = {}
        self._warned: OrderedDict[P, None] = OrderedDict()
        #: Listings that were let go, of which some may be in use yet.
        self._outdated: list[weakref.ref[Listing]] = []
        self.unkept: Final = permits.unkept
        #: Called with each namespace whose snapshot has to make room: the data kept beside it has to go, too.
        self.on_let_go: list[Callable[[P], None]] = []

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: _Key[P]) -> CachedSnapshot[R] | None:
        """The kept snapshot of this key."""
        return self._kept.get(key)

    def snapshots(self) -> list[Snapshot]:
        """All kept snapshots; one that is kept under two modes is there twice."""
        return [kept.snapshot for kept in self._kept.values()]

    def items(self) -> list[tuple[_Key[P], Snapshot]]:
        """The snapshots with their keys."""
        return [(key, kept.snapshot) for key, kept in self._kept.items()]

    def state(self) -> CacheState:
        """The number of kept namespaces, once for each mode, and their bytes."""
        size = partial(_bytes_of, self.snapshots())
        return CacheState(len(self._kept), size, self._budget.maximum)

    def requests(self, place: P, listing: Listing) -> int:
        """The number of times that a kept listing was asked for, in any mode."""
        places = (self._kept.get((place, mode)) for mode in Mode)
        return sum(kept.requests for kept in places if kept is not None and kept.snapshot.listing is listing)

    @property
    def room(self) -> int:
        """Bytes that can be kept without letting another one go."""
        return self._budget.available

    def fit(self) -> None:
        """Drop the least recently used until the others fit: there may be less room than before."""
        self._leases.settle()
        while self._kept and self._budget.available < 0:
            place = next(iter(self._kept))
            self.let_go(place)
            self._report_let_go(place[0])
            self._leases.settle()

    def used(self, key: _Key[P]) -> None:
        """Note that a kept snapshot was used: it is the last to go."""
        self._kept.move_to_end(key)

    def known(self, place: P) -> list[Snapshot]:
        """All snapshots of a namespace in memory: one may be the newest, or be moved to it."""
        known: list[Snapshot] = []
        for mode in Mode:
            kept = self._kept.get((place, mode))
            snapshot = self._living((place, mode)) if kept is None else kept.snapshot
            if snapshot is not None and all(snapshot.listing is not other.listing for other in known):
                known.append(snapshot)
        return known

    def _living(self, key: _Key[P]) -> Snapshot | None:
        """An unkept snapshot, while its listing is still referenced."""
        if (alive := self._alive.get(key)) is None or (listing := alive[0]()) is None:
            return None
        return Snapshot(alive[1], listing, alive[2])

    # -- permits

    async def acquire(self, key: _Key[P], size: int) -> Permit:
        """Permits for ``size`` bytes of a snapshot that is about to be read, or moved.

        Raises :exc:`~broker_core.memory.permit_errors.PermitError` if clients hold all of them.
        """
        return self.try_acquire(key, size) or await self.unkept.acquire(size)

    def try_acquire_free(self, size: int) -> Permit | None:
        """Permits for ``size`` bytes if there is room without dropping anything."""
        return self._budget.try_acquire(size) if size <= self._budget.available else None

    def try_acquire(self, key: _Key[P], size: int, made: Listing | None = None) -> Permit | None:
        """Permits of the budget for what is kept, without waiting; others make room, as far as that helps.

        Snapshots of the same namespace stay: the new one may be made of them. ``made`` is the new one, if it is.
        """
        budget = self._budget
        if not budget.fits(size):
            return None
        self._leases.settle()
        if size > max(budget.available, budget.maximum // _LARGE):
            others = sum(kept.snapshot.nbytes for other, kept in self._kept.items() if other[0] != key[0])
            if size > budget.available + others and not self._set_aside(size - others, made):
                return None
        while size > budget.available:
            other = next((each for each in self._kept if each[0] != key[0]), None)
            if other is None:
                if self._set_aside(size, made):
                    break
                return None
            self.let_go(other)
            self._report_let_go(other[0])
            self._leases.settle()  # dropped snapshots that clients still have free nothing
        return budget.try_acquire(size)

    def _set_aside(self, size: int, made: Listing | None) -> bool:
        """Make room for ``size`` bytes by outdated listings that are in use yet: they count in ``heap`` from now on.

        False, and nothing is changed, if that makes too little room, or there is none for them.
        """
        short = size - self._budget.available
        outdated = [each for each in (reference() for reference in self._outdated) if each is not None]
        if short <= 0 or not outdated:
            return short <= 0
        listings = [kept.snapshot.listing for kept in self._kept.values()]
        if made is not None:
            listings.append(made)
        current = {id(chunk) for listing in listings for chunk in data_of(listing).chunks}
        parts: dict[int, tuple[object, int]] = {}
        moved = 0
        for listing in outdated:  # the oldest first
            for owner in (listing, *data_of(listing).chunks):
                held = self._leases.held(owner)
                if id(owner) in current or id(owner) in parts or not self._is_leased(owner) or held is None:
                    continue
                parts[id(owner)] = owner, held.count
                moved += held.count
            if moved >= short:
                break
        permit = self._heap.try_keep(moved) if moved >= short else None
        if permit is not None:
            self._leases.hold_parts(list(parts.values()), permit)
        return permit is not None

    def hold_beside(self, place: P, parts: Sequence[tuple[object, int]]) -> bool:
        """Hold permits for data kept beside the snapshot of a namespace, while each part of it lives.

        False if there is no room: then it must not be kept.
        """
        fresh = [part for part in parts if not self._is_leased(part[0])]
        permit = self.try_acquire((place, Mode.PERSISTENT), sum(size for _, size in fresh)) if fresh else None
        if permit is not None:
            self._leases.hold_parts(fresh, permit)
        return permit is not None or not fresh

    def _report_let_go(self, place: P) -> None:
        for let_go in self.on_let_go:
            let_go(place)

    def keep(self, key: _Key[P], snapshot: Snapshot, seen: int, permit: Permit | None) -> None:
        """Keep a snapshot in the place of an older one, if there is room.

        The permits then belong to its chunks, as far as they have none, and to its listing. ``permit`` is ``None`` for
        a snapshot whose listing was in memory already, and has its lease.
        """
        if not snapshot.version.number:  # nothing: it costs nothing to know that again
            if permit is not None:
                permit.release()
            return
        parts = self._unleased(key, snapshot.listing)
        kept = self._kept.get(key)
        requests = 0 if kept is None else kept.requests
        if kept is not None and kept.snapshot.listing is not snapshot.listing:
            del kept
            self.let_go(key)
        if self._lease(key, parts, permit, snapshot.listing):
            self._alive.pop(key, None)
            self._kept[key] = CachedSnapshot(snapshot, seen, requests)
            self._kept.move_to_end(key)
        else:
            self._leave(key, snapshot)

    def _unleased(self, key: _Key[P], listing: Listing) -> list[tuple[object, int]]:
        """The parts of a listing without permits of the ``snapshots`` budget, with their bytes: chunks, and what the
        listing has besides them.
        """
        data, kept = data_of(listing), self._kept.get(key)
        former = None if kept is None else data_of(kept.snapshot.listing)
        # A chunk of the one that is kept has its permits, unless it is alone and has them by its listing: of a large
        # listing it is not worth asking for each.
        fresh = data.chunks if former is None or len(former.chunks) < 2 else data.chunks_since(former)
        parts: list[tuple[object, int]] = [
            (chunk, chunk.nbytes) for chunk in fresh if not self._is_leased(chunk)
        ]
        if self._is_leased(listing):
            return parts if len(data.chunks) > 1 else []
        if len(data.chunks) == 1:  # as a rule, and then all is one lease
            return [(listing, data.own_bytes + sum(size for _, size in parts))]
        return [*parts, (listing, data.own_bytes)]

    def _is_leased(self, owner: object) -> bool:
        held = self._leases.held(owner)
        return isinstance(held, Permit) and held.budget is self._budget

    def _lease(
        self, key: _Key[P], parts: Sequence[tuple[object, int]], permit: Permit | None, made: Listing
    ) -> bool:
        """Hold permits for all parts; false if they are not of the ``snapshots`` budget."""
        budget = self._budget
        size = sum(size for _, size in parts)
        if permit is not None and permit.budget is budget:
            self._leases.hold_parts(parts, budget.try_update(permit, size) or permit)
            return True
        kept = self.try_acquire(key, size, made) if parts else None
        if kept is not None or not parts:
            if permit is not None:
                permit.release()
            if kept is not None:
                self._leases.hold_parts(parts, kept)
            return True
        if permit is not None:
            fresh = [(owner, size) for owner, size in parts if owner not in self._leases]
            size = sum(size for _, size in fresh)
            self._leases.hold_parts(fresh, self.unkept.try_update(permit, size) or permit)
        return False

    def _leave(self, key: _Key[P], snapshot: Snapshot) -> None:
        """Leave a snapshot unkept: concurrent requests share it while it is referenced."""
        alive = self._alive

        def ended(reference: weakref.ref[Listing]) -> None:
            # In any thread: a newer one may have its place.
            if alive.get(key, (None,))[0] is reference:
                alive.pop(key, None)

        reference = weakref.ref(snapshot.listing, ended)
        alive[key] = (reference, snapshot.version, snapshot.property_keys)
        if key[0] not in self._warned:
            self._warned[key[0]] = None
            if len(self._warned) > _MOST_WARNED:
                self._warned.popitem(last=False)
            _log.warning(
                "namespace does not fit into limits.snapshots and is read for each listing",
                namespace=str(snapshot.listing.namespace),
                bytes=snapshot.nbytes,
                limit=self._budget.maximum,
            )

    def let_go(self, key: _Key[P]) -> None:
        """Forget a snapshot, and the others of its namespace that share its listing; a request may still hold it."""
        kept = self._kept.get(key)
        if kept is None:
            return
        listing = kept.snapshot.listing
        for mode in Mode:
            other = self._kept.get((key[0], mode))
            if other is not None and other.snapshot.listing is listing:
                del self._kept[key[0], mode]
        self._outdated = [each for each in self._outdated if each() is not None]
        self._outdated.append(weakref.ref(listing))
        # No new request will use this listing.
        data_of(listing).memo.close()

    def drop_all(self) -> None:
        """Forget all snapshots."""
        self._alive.clear()
        while self._kept:
            key = next(iter(self._kept))
            self.let_go(key)
            self._report_let_go(key[0])


def _bytes_of(snapshots: Iterable[Snapshot]) -> int:
    """Bytes that snapshots hold together; a chunk that several of them have counts once."""
    listings = {id(data): data for data in (data_of(each.listing) for each in snapshots)}.values()
    chunks = {id(chunk): chunk for data in listings for chunk in data.chunks}.values()
    return sum(data.own_bytes for data in listings) + sum(chunk.nbytes for chunk in chunks)
