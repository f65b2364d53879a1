"""The snapshots that are in memory: which are kept, what makes room for another, and what is served without being kept.

A snapshot has its permits before it is read. The ``snapshots`` budget has them if there is room or the least used
snapshots make some. Where clients still read what would have to go, or the namespace is larger than the budget, nobody
waits for the budget: the snapshot is read for those who ask now and not kept. The budget ``unkept`` is for these, one
at a time where they are larger than that; who asks meanwhile shares the one that is in memory.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from typing import Final

import structlog

from broker_core.catalog.snapshots.snapshot import Snapshot, SnapshotRest
from broker_core.listing.listing import Listing, Selection, data_of
from broker_core.memory.leases import Leases
from broker_core.memory.permit_budget import Permit, PermitBudget
from broker_core.names import Mode, NamespaceName
from broker_core.plugin_api.listing_result import TopicListingResult

__all__ = ["CachedSnapshot", "SnapshotCache", "SnapshotKey", "result_of"]

SnapshotKey = tuple[NamespaceName, Mode]

#: Namespaces that did not fit, which are remembered so that it is logged once.
_MOST_TOLD: Final = 1000

_log = structlog.get_logger(__name__)


def result_of(topics: Listing | Selection, snapshot: Snapshot) -> TopicListingResult:
    """The answer with these topics of a snapshot."""
    return TopicListingResult.success(topics, version=str(snapshot.version))


class CachedSnapshot:
    """A snapshot in memory, its answer to a request without properties, and the state of the file it was seen at."""

    __slots__ = ("asked", "result", "seen", "snapshot")

    def __init__(self, snapshot: Snapshot, seen: int, asked: int = 0) -> None:
        self.snapshot = snapshot
        self.result = result_of(snapshot.listing, snapshot)
        self.seen = seen
        #: How often it, and those before in its place, were asked for.
        self.asked = asked


class SnapshotCache:
    """Snapshots by namespace and mode, the least used first to go. For one event loop."""

    def __init__(self, budget: PermitBudget, unkept: PermitBudget, leases: Leases) -> None:
        self._budget = budget
        self._leases = leases
        self._kept: OrderedDict[SnapshotKey, CachedSnapshot] = OrderedDict()
        self._alive: dict[SnapshotKey, tuple[weakref.ref[Listing], SnapshotRest]] = {}
        self._told: OrderedDict[NamespaceName, None] = OrderedDict()
        self.unkept = unkept

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: SnapshotKey) -> CachedSnapshot | None:
        """The one that is kept under this key."""
        return self._kept.get(key)

    def snapshots(self) -> list[Snapshot]:
        """All that are kept; one that is kept under two modes is there twice."""
        return [kept.snapshot for kept in self._kept.values()]

    def asked(self, listing: Listing) -> int:
        """How often a kept listing was asked for, in any mode."""
        places = (self._kept.get((listing.namespace, mode)) for mode in Mode)
        return sum(kept.asked for kept in places if kept is not None and kept.snapshot.listing is listing)

    @property
    def room(self) -> int:
        """Bytes that can be kept without letting another one go."""
        return self._budget.available

    def used(self, key: SnapshotKey) -> None:
        """One that is kept was used: it is the last to go."""
        self._kept.move_to_end(key)

    def known(self, namespace: NamespaceName) -> list[Snapshot]:
        """All of a namespace that are in memory: one may be the newest, or be moved to it."""
        known: list[Snapshot] = []
        for mode in Mode:
            kept = self._kept.get((namespace, mode))
            snapshot = self._living((namespace, mode)) if kept is None else kept.snapshot
            if snapshot is not None and all(snapshot.listing is not other.listing for other in known):
                known.append(snapshot)
        return known

    def _living(self, key: SnapshotKey) -> Snapshot | None:
        """An unkept snapshot, while its listing is still referenced."""
        listing, rest = self._alive.get(key, (None, None))
        found = None if listing is None else listing()
        return None if found is None or rest is None else Snapshot.of_rest(found, rest)

    async def permit_for(self, key: SnapshotKey, size: int) -> Permit:
        """Permits for a snapshot of ``size`` bytes that is about to be read.

        Raises :exc:`~broker_core.memory.permit_errors.PermitError` where clients hold all that there is.
        """
        return self._permit_now(key, size) or await self.unkept.acquire(size)

    def _permit_now(self, key: SnapshotKey, size: int) -> Permit | None:
        """Permits of the budget for what is kept, without waiting; others make room, as far as that helps.

        Those of the same namespace stay: the new one may be made of them.
        """
        budget = self._budget
        if not budget.fits(size):
            return None
        self._leases.settle()
        missing = size - budget.available
        # With room for all nobody looks at what is kept: of many namespaces that takes longer than to read one.
        for other in [each for each in self._kept if each[0] != key[0]] if missing > 0 else ():
            if missing <= 0:
                break
            if other in self._kept:  # and did not go together with one before
                missing -= self._kept[other].snapshot.nbytes
                self.let_go(other)
        self._leases.settle()
        return budget.try_acquire(size)

    def keep(self, key: SnapshotKey, snapshot: Snapshot, seen: int, permit: Permit | None) -> None:
        """Keep a snapshot in the place of an older one, if there is room; the permits are its listing's from now on.

        ``permit`` is ``None`` for one whose listing was in memory already, and has its lease.
        """
        if not snapshot.version.number:  # nothing: it costs nothing to know that again
            if permit is not None:
                permit.release()
            return
        before = self._kept.get(key)
        asked = 0 if before is None else before.asked
        if snapshot.listing in self._leases:
            if permit is not None:
                permit.release()
            permit = None
        else:
            self.let_go(key)
        if permit is None:
            is_kept = any(other.snapshot.listing is snapshot.listing for other in self._kept.values())
            if not is_kept:
                permit = self._permit_now(key, snapshot.nbytes)
        else:
            permit = self._settled(key, snapshot.nbytes, permit)
            is_kept = False
        if permit is not None:
            self._leases.hold(snapshot.listing, permit)
            is_kept = permit.budget is self._budget
        if is_kept:
            self._alive.pop(key, None)
            self._kept[key] = CachedSnapshot(snapshot, seen, asked)
            self._kept.move_to_end(key)
        else:
            self._leave(key, snapshot)

    def _settled(self, key: SnapshotKey, size: int, permit: Permit) -> Permit:
        """The permits changed to the true size; of the budget for what is kept, where there is room by now."""
        if permit.budget is self._budget:
            return self._budget.try_update(permit, size) or permit
        kept = self._permit_now(key, size)
        if kept is None:
            return self.unkept.try_update(permit, size) or permit
        permit.release()
        return kept

    def _leave(self, key: SnapshotKey, snapshot: Snapshot) -> None:
        """Not kept: concurrent requests share it while it is referenced."""
        alive = self._alive

        def ended(reference: weakref.ref[Listing]) -> None:
            # In any thread: a newer one may have its place.
            if alive.get(key, (None, None))[0] is reference:
                alive.pop(key, None)

        alive[key] = (weakref.ref(snapshot.listing, ended), snapshot.rest)
        if key[0] not in self._told:
            self._told[key[0]] = None
            if len(self._told) > _MOST_TOLD:
                self._told.popitem(last=False)
            _log.warning(
                "namespace does not fit into limits.snapshots and is read for each listing",
                namespace=str(key[0]),
                bytes=snapshot.nbytes,
                limit=self._budget.maximum,
            )

    def let_go(self, key: SnapshotKey) -> None:
        """Forget a snapshot, and the others of its namespace that share its listing; a request may still hold it."""
        kept = self._kept.get(key)
        if kept is None:
            return
        listing = kept.snapshot.listing
        for mode in Mode:
            other = self._kept.get((key[0], mode))
            if other is not None and other.snapshot.listing is listing:
                del self._kept[key[0], mode]
        # No new request will use this listing.
        data_of(listing).memo.close()

    def drop_all(self) -> None:
        """Let go of all."""
        self._alive.clear()
        while self._kept:
            self.let_go(next(iter(self._kept)))
