"""Namespaces of a cluster in memory: listed once however many ask, and compared with the cluster before they are old.

Each domain of a namespace is a part of its own, with an age: the time since the start of the last listing of the
cluster that it was compared with. Each request says how old a part may be. If it is older, one listing of the cluster
is made for all waiting requests, with the known hash, so that a namespace without a change costs a few bytes; if it
fails, they get its error. A request never gets an older part.

A changed namespace shares its chunks with the one before (:mod:`broker_core.snapshots`), under the same permits, and
the least recently used make room. Large ones are stored for the next start; a part that is read from there counts as
never compared.
"""

from __future__ import annotations

import asyncio
import itertools
import secrets
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, TypeAlias

import pyarrow as pa

from broker_core.change_log import CatalogVersion
from broker_core.concurrency import in_thread, in_turns
from broker_core.errors import Cause, InvalidListing, ListingFailed
from broker_core.guards import HELD, ShrinkGuard
from broker_core.listing import ListingData, data_of, listing_of
from broker_core.memory import Permit, PermitError, Permits, permits_refused
from broker_core.names import Mode, NamespaceName
from broker_core.settings import ShrinkGuardSettings
from broker_core.snapshots import CachedSnapshot, Snapshot, SnapshotCache, StoredSnapshots
from broker_core.upstream.snapshots.name_moves import NameMoves, net_moves, snapshot_of
from broker_core.upstream.snapshots.snapshot_log import MOST_STEP, MoveLogs, ViewOfNamespace
from broker_core.upstream.snapshots.store_contract import StoreListing, TopicStore, TopicUpdate, View
from broker_core.upstream.snapshots.stored_live_snapshots import DomainState, ListingRun, PartKey, StoredParts

__all__ = ["DOMAINS_OF", "LiveSnapshots"]

#: The parts that a listing in a mode is made of.
DOMAINS_OF: Final = {
    Mode.PERSISTENT: (Mode.PERSISTENT,),
    Mode.NON_PERSISTENT: (Mode.NON_PERSISTENT,),
    Mode.ALL: (Mode.NON_PERSISTENT, Mode.PERSISTENT),
}
#: Seconds between the begins of two listings of one part.
_PAUSE: Final = 1.0
#: Seconds between them after a change by way of this server.
_PAUSE_AFTER_WRITE: Final = 0.1
#: Listings in a row that may show a half-made update, after which there is no answer.
_IN_DOUBT: Final = 5
#: Large answers that are made into listings at a time: each needs memory besides its permits until then.
_LOADS: Final = 2
#: Bytes of an answer that is made into a listing on the event loop.
_SMALL: Final = 64 * 1024
#: The memory of an answer until it is a listing, as a multiple of its bytes: itself, the column of its names, the
#: listing.
_FACTOR: Final = 4
_OVERHEAD: Final = 16 * 1024
#: Parts that are known, in memory or not.
_MOST: Final = 65_536
#: Seconds in which snapshots are stored at the end.
_STORING: Final = 5.0
_NEVER: Final = float("-inf")

_Kept: TypeAlias = SnapshotCache[ViewOfNamespace, None]


class LiveSnapshots:
    """The snapshots of one store. Made and used on one event loop.

    ``changed`` is called with a namespace whenever it has another listing than before. ``stored`` names the cluster,
    and stores its listings for the next start.
    """

    def __init__(
        self,
        store: TopicStore,
        permits: Permits,
        changed: Callable[[NamespaceName], None],
        *,
        places: int = 64,
        guard: ShrinkGuard | None = None,
        stored: tuple[StoredSnapshots, str] | None = None,
    ) -> None:
        self._store = store
        self._changed = changed
        self._guard = guard or ShrinkGuard(ShrinkGuardSettings(enabled=False))
        self.kept: Final[_Kept] = SnapshotCache(permits)
        permits.caches.show("snapshots", self.kept.state)
        self._parts: OrderedDict[PartKey, DomainState] = OrderedDict()
        self._places = asyncio.Semaphore(places)
        self._loads = asyncio.Semaphore(_LOADS)
        self._stored = None if stored is None else StoredParts(*stored, self._in_memory, lambda: self._parts)
        #: The id under which versions are comparable.
        self.id: Final = secrets.token_urlsafe(16)
        #: The changes of places that somebody follows.
        self.logs: Final = MoveLogs()
        self._number = itertools.count(1)
        #: Comparisons from before do not count: the cluster was changed since.
        self._not_before = _NEVER
        self._loop = asyncio.get_running_loop()
        #: The clock by which snapshots age.
        self.clock: Callable[[], float] = self._time
        #: Listings of the cluster, by result.
        self.counts = dict.fromkeys(("unchanged", "changed", "first", "failed"), 0)

    def __len__(self) -> int:
        return len(self.kept)

    def _time(self) -> float:
        return self._loop.time()

    def fit(self) -> None:
        """Drop snapshots for which there is no room any more."""
        self.kept.fit()

    async def close(self) -> None:
        """Cancel all questions, store the snapshots in memory, and drop them."""
        tasks = [
            part.run.task
            for part in self._parts.values()
            if part.run is not None and part.run.task is not None
        ]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._stored is not None:
            await self._stored.stop(_STORING)
        self.kept.drop_all()

    def places(self) -> list[ViewOfNamespace]:
        """The places with topics in memory, once for each part."""
        return [key[0] for key, snapshot in self.kept.items() if len(snapshot.listing)]

    def wrote(self, namespace: NamespaceName, lost: Callable[[View], int]) -> None:
        """Note that a namespace was changed by way of this server: answers from now on are of a later listing.

        ``lost`` gives the number of names of a view's listing that this removed, which is no reason to hold it.
        """
        self._not_before = self.clock()
        for (place, domain), part in self._parts.items():
            kept = self.kept.get((place, domain))
            if place.namespace == namespace:
                part.last_began = min(part.last_began, self.clock() - _PAUSE + _PAUSE_AFTER_WRITE)
                if kept is not None and domain is Mode.PERSISTENT:
                    left = max(len(kept.snapshot.listing) - lost(place.view), 0)
                    self._guard.intended(namespace, _question((place, domain)), left)

    def age(self, place: ViewOfNamespace, mode: Mode) -> float | None:
        """Seconds since the oldest part of a listing was compared; ``None`` if it is not in memory, or never was
        compared.
        """
        if any(self.kept.get((place, part)) is None for part in DOMAINS_OF[mode]):
            return None
        compared = min(self._parts[place, part].compared for part in DOMAINS_OF[mode])
        return None if compared == _NEVER or compared < self._not_before else self.clock() - compared

    def now(self, place: ViewOfNamespace, mode: Mode, since: float) -> CachedSnapshot[None] | None:
        """The snapshot, if it is in memory, and was compared with a listing that began at ``since`` or later."""
        since = max(since, self._not_before)
        parts: list[CachedSnapshot[None]] = []
        for domain in DOMAINS_OF[mode]:
            kept, part = self.kept.get((place, domain)), self._parts.get((place, domain))
            if kept is None or part is None or part.compared < since:
                return None
            parts.append(kept)
        found = parts[0] if len(parts) == 1 else self._joined(place, *parts)
        if found is not None:
            for domain in DOMAINS_OF[mode]:
                self.kept.used((place, domain))
                self._parts[place, domain].requested_at = self.clock()
            found.requests += 1
        return found

    async def current(self, place: ViewOfNamespace, mode: Mode, since: float) -> Snapshot:
        """The snapshot, compared with a listing that began at ``since`` or later; asks the cluster if need be. Raises
        :exc:`ListingFailed`.
        """
        made = [await self._part_since(place, domain, since) for domain in DOMAINS_OF[mode]]
        kept = self.now(place, mode, since)
        if kept is not None:
            return kept.snapshot
        return made[0] if len(made) == 1 else self._join(place, *made)

    # -- updates of watches

    def known_hash(self, place: ViewOfNamespace) -> str | None:
        """The cluster's hash of the persistent topics in memory; ``None`` if there are none."""
        part = self._parts.get((place, Mode.PERSISTENT))
        return None if part is None or self.kept.get((place, Mode.PERSISTENT)) is None else part.known_hash

    def requested_at(self, place: ViewOfNamespace) -> float:
        """The time when the persistent topics of a place were asked for last."""
        part = self._parts.get((place, Mode.PERSISTENT))
        return _NEVER if part is None else part.requested_at

    async def move(self, place: ViewOfNamespace, updates: Sequence[TopicUpdate]) -> bool:
        """Apply updates of a watch; false if they do not fit the snapshot in memory, which then stays as it is."""
        key = place, Mode.PERSISTENT
        part = self._parts.get(key)
        if part is None:
            return False
        async with part.moving:
            kept = self.kept.get(key)
            if kept is None:
                return False
            # A listing may have had some of them already.
            had = [row for row, update in enumerate(updates) if update.topics_hash == part.known_hash]
            rest = updates[had[-1] + 1 :] if had else updates
            if not rest:
                return True
            moved = await self._moved(key, kept.snapshot, rest)
            if moved is None:
                return False
            part.known_hash = rest[-1].topics_hash
            made, moves = moved
            if part.passed is not None:
                part.passed.update(update.topics_hash for update in rest)
                part.leapt = part.leapt or any(len(each.added) + len(each.removed) > 1 for each in rest)
            self._store_soon(key)
            await self.logs.moved(place, made.listing, moves.removed, moves.added)
        self._changed(place.namespace)
        return True

    async def _moved(
        self, key: PartKey, old: Snapshot, updates: Sequence[TopicUpdate]
    ) -> tuple[Snapshot, NameMoves] | None:
        moves = net_moves(CatalogVersion(self.id, next(self._number)), updates)
        if moves is None:
            return None
        permit: Permit | None = None
        try:
            permit = await self.kept.acquire(key, old.moved_bytes(moves))
            made = await in_turns(old.moving(moves), old.listing.namespace)
            expected = len(old.listing) + len(moves.added) - len(moves.removed)
            answered = await in_thread(key[0].namespace, lambda: made.listing.topics_hash)
            if len(made.listing) != expected or answered != updates[-1].topics_hash:
                return None
            # A broker whose session was lost sends the difference of a new listing as one update.
            single = sum(len(each.removed) for each in updates if len(each.removed) + len(each.added) == 1)
            self._guard.check(key[0].namespace, _question(key), len(made.listing), deletions=single)
            self.kept.keep(key, made, 0, permit)
            permit = None
            return made, moves
        except (InvalidListing, PermitError, ListingFailed):
            return None
        finally:
            if permit is not None:
                permit.release()

    # -- one listing of both domains

    def _joined(
        self, place: ViewOfNamespace, other: CachedSnapshot[None], own: CachedSnapshot[None]
    ) -> CachedSnapshot[None] | None:
        """The kept listing of all topics, if it is made of these two; if one has no topics, the other one."""
        if not len(other.snapshot.listing):
            return own
        if not len(own.snapshot.listing):
            return other
        found = self.kept.get((place, Mode.ALL))
        stamp = _stamp(other.snapshot, own.snapshot)
        if found is None or found.snapshot.version.stamp != stamp:
            self._join(place, other.snapshot, own.snapshot)
            found = self.kept.get((place, Mode.ALL))
        return found

    def _join(self, place: ViewOfNamespace, other: Snapshot, own: Snapshot) -> Snapshot:
        if not len(other.listing):
            return own
        if not len(own.listing):
            return other
        chunks = (*data_of(other.listing).chunks, *data_of(own.listing).chunks)
        listing = listing_of(ListingData(place.namespace, Mode.ALL, chunks))
        version = CatalogVersion(self.id, next(self._number), _stamp(other, own))
        joined = Snapshot(version, listing)
        self.kept.keep((place, Mode.ALL), joined, 0, None)
        return joined

    # -- comparing with the store

    async def _part_since(self, place: ViewOfNamespace, domain: Mode, since: float) -> Snapshot:
        key = place, domain
        since = max(since, self._not_before)
        while True:
            part = self._part(key)
            kept = self.kept.get(key)
            if kept is not None and part.compared >= since:
                return kept.snapshot
            run = part.run
            if run is None:
                run = part.run = ListingRun()
                run.task = self._loop.create_task(self._compare(key, part, run))
                run.task.add_done_callback(_looked_at)
            assert run.task is not None
            try:
                # Shielded: a cancelled request must not end the listing of the others.
                snapshot = await asyncio.shield(run.task)
            except ListingFailed as failure:
                if run.began >= since:
                    raise failure.copy() from failure.__cause__
                continue
            if run.began >= since:
                return snapshot

    def _part(self, key: PartKey) -> DomainState:
        part = self._parts.get(key)
        if part is None:
            part = self._parts[key] = DomainState()
            if len(self._parts) > _MOST:
                for other, each in self._parts.items():
                    if each.run is None and other != key:
                        self.kept.let_go(other)
                        del self._parts[other]
                        break
        else:
            self._parts.move_to_end(key)
        return part

    async def _compare(self, key: PartKey, part: DomainState, run: ListingRun) -> Snapshot:
        """List the cluster, with the known hash."""
        (namespace, view), domain = key
        held: list[Permit] = []
        doubted: str | None = None

        async def admit(size: int) -> None:
            if not held:
                held.append(await self.kept.acquire(key, _FACTOR * size + _OVERHEAD))

        try:
            for _ in range(_IN_DOUBT):
                await asyncio.sleep(max(part.last_began + _PAUSE - self.clock(), 0))
                if (newer := self._led_past(key, part, run, doubted)) is not None:
                    return newer
                async with self._places:
                    kept = self.kept.get(key) or await self._read(key, part)
                    known = None if kept is None else part.known_hash
                    part.passed, part.leapt = {known}, False
                    run.began = part.last_began = self.clock()
                    listed = await self._store.list(view, namespace, domain, known, admit)
                if listed.names is None:
                    assert kept is not None
                    self._check_loss(key, len(kept.snapshot.listing))
                    self.counts["unchanged"] += 1
                    part.compared, part.is_listed = run.began, True
                    # A watch may have moved it meanwhile.
                    return (self.kept.get(key) or kept).snapshot
                await admit(listed.size)
                async with part.moving:
                    doubted = listed.topics_hash
                    if (newer := self._led_past(key, part, run, doubted)) is not None:
                        return newer
                    is_passed = doubted is not None and doubted in part.passed
                    if not (doubted != part.known_hash if is_passed else part.leapt):
                        return await self._replaced(key, part, run, listed, held)
                # It is, or may be, older than a client's listing: of a moment in the middle of an update of several
                # names, or the newer one had to make room. The watch's next update, or another listing, decides.
                while held:
                    held.pop().release()
            raise ListingFailed(
                f"The topics of {namespace} change so fast that no listing of the brokers is known to be of one moment",
                cause=Cause.UPSTREAM,
                reason="upstream",
            )
        except PermitError as error:
            self.counts["failed"] += 1
            raise permits_refused("snapshot_memory") from error
        except ListingFailed as failure:
            self.counts["failed"] += 1
            if failure.reason == HELD:
                # The former snapshot is not given any more, least of all to a new watcher.
                part.compared = _NEVER
            raise
        finally:
            part.run = part.passed = None
            for permit in held:
                permit.release()

    def _check_loss(self, key: PartKey, count: int) -> None:
        """Check a listing of so many topics against the one before it. Raises :exc:`ListingFailed`.

        Non-persistent topics are with a broker while clients use them: their number says nothing.
        """
        if key[1] is Mode.PERSISTENT:
            self._guard.check(key[0].namespace, _question(key), count)

    def _led_past(
        self, key: PartKey, part: DomainState, run: ListingRun, topics_hash: str | None
    ) -> Snapshot | None:
        """The kept snapshot, if the watch has led past the listing with this hash since it began."""
        kept = self.kept.get(key)
        if kept is None or topics_hash is None or topics_hash not in (part.passed or ()):
            return None
        self.counts["unchanged"] += 1
        part.compared = run.began
        return kept.snapshot

    async def _replaced(
        self, key: PartKey, part: DomainState, run: ListingRun, listed: StoreListing, held: list[Permit]
    ) -> Snapshot:
        """Keep what the store lists now in place of the former snapshot."""
        (namespace, _), domain = key
        kept = self.kept.get(key)
        old = None if kept is None else kept.snapshot
        version = CatalogVersion(self.id, next(self._number))
        try:
            most = MOST_STEP if self.logs.follows(key[0]) else 0
            work = partial(snapshot_of, namespace, domain, version, old, listed.names, most=most)
            if listed.size <= _SMALL:
                made, moves = work()
            else:
                async with self._loads:
                    made, moves = await in_thread(namespace, work)
        except (InvalidListing, pa.ArrowException) as error:
            raise ListingFailed(
                f"The brokers behind this server list a bad topic: {error}",
                cause=Cause.UPSTREAM,
                reason="upstream",
            ) from None
        # Before anything of it is kept: nobody gets a held listing.
        self._check_loss(key, len(made.listing))
        was_listed, part.is_listed = part.is_listed, True
        part.known_hash = listed.topics_hash
        part.compared = run.began
        if made is old:
            self.counts["unchanged"] += 1
            return made
        self.counts["first" if old is None else "changed"] += 1
        self.kept.keep(key, made, 0, held.pop() if held else None)
        self._store_soon(key)
        if moves is None:
            self.logs.restart(key[0])
        else:
            await self.logs.moved(key[0], made.listing, moves.removed, moves.added)
        if was_listed:
            self._changed(key[0].namespace)
        return made

    # -- stored for the next start

    def _in_memory(self, key: PartKey) -> tuple[CachedSnapshot[None], str] | None:
        """The kept snapshot of a part, and the store's hash of it."""
        kept, part = self.kept.get(key), self._parts.get(key)
        if kept is None or part is None or part.known_hash is None:
            return None
        return kept, part.known_hash

    def _store_soon(self, key: PartKey) -> None:
        if self._stored is not None:
            self._stored.changed(key)

    async def _read(self, key: PartKey, part: DomainState) -> CachedSnapshot[None] | None:
        """Keep the stored snapshot of a part, if there is room. It is of an earlier moment: nobody gets it before it is
        compared.
        """
        if self._stored is None or (found := await self._stored.find(key)) is None:
            return None
        permit = self.kept.try_acquire(key, found.nbytes)
        if permit is None:
            return None
        try:
            async with self._loads:
                listing = await self._stored.read(found)
            if listing is None or self.kept.get(key) is not None:
                return self.kept.get(key)
            # It may be older than the snapshot in memory before.
            part.compared, part.known_hash = _NEVER, found.stamp
            version = CatalogVersion(self.id, next(self._number))
            self.kept.keep(key, Snapshot(version, listing), 0, permit)
            permit = None
        finally:
            if permit is not None:
                permit.release()
        self.logs.restart(key[0])
        if part.is_listed:
            self._changed(key[0].namespace)
        return self.kept.get(key)


def _question(key: PartKey) -> str:
    """The question as the guard knows and shows it: the domain and the principal."""
    (_, view), domain = key
    audience = (
        "all" if view is None else " of ".join(map(str, view)) if isinstance(view, tuple) else str(view)
    )
    return f"{domain.name} for {audience}"


def _stamp(other: Snapshot, own: Snapshot) -> str:
    return f"{other.version.number}-{own.version.number}"


def _looked_at(task: asyncio.Task[Snapshot]) -> None:
    """Read the exception of a run whose callers were all cancelled: asyncio would log it as never retrieved."""
    if not task.cancelled():
        task.exception()
