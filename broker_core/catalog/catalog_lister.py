"""Listing from the catalogue: one shared snapshot per namespace, always of the newest version.

A listing must show every change that was committed before its request, also by another process. So each request looks
at the file (:class:`~.file_watch.FileWatch`, some microseconds on the event loop), then reads the namespace's version
if anything was committed, and only if that has changed the snapshot is moved by the change log, or read anew if the log
does not reach back. That is done once for all waiting requests, and in a thread except for small moves and for
namespaces of a few topics.

Every listing that is made here has permits from before it is read until nothing refers to it any more: a client that
reads its answer slowly pins the listing of its answer, also after a change has moved the snapshot on
(:mod:`broker_core.snapshots`).
"""

from __future__ import annotations

import asyncio
import sqlite3
import sys
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

import structlog

from broker_core.catalog.catalog_errors import CatalogError, reading_catalog
from broker_core.catalog.move_or_read_snapshot import SMALL, SnapshotSource, SnapshotUpdates
from broker_core.catalog.snapshots.name_changes import LoggedNames
from broker_core.catalog.snapshots.recent_changes import (
    MOST_RECENT,
    KeptSnapshot,
    KeptSnapshots,
    RecentChanges,
    SnapshotKey,
    without_topics,
)
from broker_core.catalog.store.file_watch import FileWatch
from broker_core.catalog.store.sqlite_catalog import SqliteCatalog
from broker_core.catalog.topic_details import describe, described_bytes
from broker_core.catalog.topic_record import properties_text
from broker_core.catalog.warm_start import WarmStart
from broker_core.concurrency import in_thread, loop_turn
from broker_core.errors import ListingFailed
from broker_core.guards import ShrinkGuard
from broker_core.listing import Details, Listing, Selection
from broker_core.memory import Permit, PermitError, Permits, permits_refused
from broker_core.patterns import TopicsPattern
from broker_core.plugin_api import (
    NO_PROPERTIES,
    DescribeRequest,
    ListingRequest,
    PolledLister,
    TopicListingResult,
)
from broker_core.settings import ShrinkGuardSettings
from broker_core.snapshots import Snapshot, StoredSnapshots, result_of

if TYPE_CHECKING:
    from broker_core.catalog.snapshots.topic_tables import TopicTables

__all__ = ["CatalogLister"]

T = TypeVar("T")

_log = structlog.get_logger(__name__)

#: Namespaces read or moved at a time: until it is a snapshot, each needs memory besides its permits.
_LOADS: Final = 2
#: Bytes of permits for a read or a small move that begins before its size is known, and how many may begin so.
_ROOM: Final = 8 * 1024 * 1024
_AT_ONCE: Final = 4
#: Seconds for which an outdated snapshot may stay while the changes since concern no request.
_SOON: Final = 0.1


class CatalogLister(PolledLister):
    """The default lister of a broker without a cluster (:class:`~broker_core.plugin_api.listing_result.DefaultLister`).

    Made and used on one event loop. The budget ``permits.snapshots`` bounds the bytes of all listings; the least used
    snapshots make room, and a namespace that does not fit is read for each listing. ``property_keys`` are the selecting
    properties: all that a request gives must be equal; ``on_ignored`` is called with the number of its other
    properties.
    """

    name: Final = "catalog"

    def __init__(
        self,
        catalog: SqliteCatalog,
        permits: Permits,
        *,
        property_keys: Sequence[str] = (),
        on_ignored: Callable[[int], None] | None = None,
        stored: StoredSnapshots | None = None,
        guard: ShrinkGuard | None = None,
    ) -> None:
        self._catalog = catalog
        self._kept = KeptSnapshots(permits)
        permits.caches.show("snapshots", self._kept.state)
        keys = tuple(dict.fromkeys(property_keys))
        self._by = SnapshotSource(
            catalog, keys, None if stored is None else WarmStart(stored, self._kept, keys)
        )
        self._former: set[asyncio.Task[None]] = set()  # which drop stored snapshots of former properties
        self.depends_on = self._by.words
        self._on_ignored = on_ignored
        self._guard = guard or ShrinkGuard(ShrinkGuardSettings(enabled=False))
        self._watch = FileWatch(catalog)
        self._small_moves = SnapshotUpdates(self._kept, self._watch)
        self._reads: dict[SnapshotKey, tuple[int, asyncio.Task[Snapshot]]] = {}
        self._selecting_now: dict[tuple[int, str], asyncio.Task[Selection]] = {}
        self._moving_soon: dict[SnapshotKey, asyncio.TimerHandle] = {}
        self._clock = 0  # counts requests and reads, to know which came first
        self._loads = asyncio.Semaphore(_LOADS)
        self._at_once = 0  # reads that have permits, and do not know yet how many they need
        self._loop = asyncio.get_running_loop()
        self._turn = loop_turn()

    def last_change(self) -> tuple[int, float] | None:
        """The number of the newest logged change of any topic, and its time in Unix seconds, if there is one."""
        return self._watch.last_change()

    def select_by(self, property_keys: Sequence[str]) -> None:
        """Select by other properties from now on; snapshots of the former ones are dropped."""
        former, keys = self._by, tuple(dict.fromkeys(property_keys))
        self._by = former.of_keys(keys)
        self.depends_on = self._by.words
        self._reads.clear()  # requests that wait for one still hold it
        for timer in self._moving_soon.values():
            timer.cancel()
        self._moving_soon.clear()
        self._kept.drop_all()
        if former.warm is not None:
            stopping = self._loop.create_task(former.warm.stop(0.0))
            self._former.add(stopping)
            stopping.add_done_callback(self._former.discard)

    def fit(self) -> None:
        """Drop snapshots that there is no room for any more."""
        self._kept.fit()

    def close(self) -> None:
        """Drop all snapshots; requests keep the ones that they use."""
        for _, task in self._reads.values():
            task.cancel()
        for timer in self._moving_soon.values():
            timer.cancel()
        self._watch.close()
        self._kept.drop_all()

    async def warm_up(self, within: float) -> None:
        """Read the stored namespaces with the most requests, as far as there is room, in at most ``within`` seconds."""
        warm = self._by.warm
        if warm is None or within <= 0:
            return
        read = 0
        try:
            async with asyncio.timeout(within):
                for key, size in await warm.most_frequent(self._watch.catalog_id):
                    if size <= self._kept.room:
                        with suppress(CatalogError, PermitError):  # the next request for it gets the error
                            await self._snapshot(key)
                            read += 1
        except TimeoutError:
            _log.info(
                "catalog.warm_within is over: further namespaces are read when they are asked for",
                namespaces=read,
            )
            return
        if read:
            _log.info("read the namespaces that were asked most", namespaces=read)

    async def store(self, within: float) -> None:
        """Store the snapshots in memory for the next start, in at most ``within`` seconds, and none later."""
        await asyncio.gather(*self._former)
        if self._by.warm is not None:
            await self._by.warm.stop(within)

    # -- answering

    def list_now(
        self, request: ListingRequest, applied: TopicsPattern | None = None
    ) -> TopicListingResult | None:
        """The answer if the snapshot is in memory, or small, and nothing relevant has changed since, else ``None``.

        Relevant are changes that concern the ``applied`` pattern, if the caller applies one to the answer.
        """
        kept = self._known((request.namespace, request.mode), applied, request.properties)
        if kept is None:
            return None
        return self._result(request.properties, kept.snapshot) if request.properties else kept.result

    def still_valid(
        self, request: ListingRequest, applied: TopicsPattern | None, listing: weakref.ref[Listing]
    ) -> Listing | None:
        """The listing of :meth:`list_now`, if it is ``listing``, or the pattern matches the same topics in both."""
        key = (request.namespace, request.mode)
        known = self._known(key, applied)
        if known is None:
            return None
        now = known.snapshot.listing
        if now is listing():
            return now
        kept = self._kept.get(key)
        recent = None if applied is None or kept is None else self._recent(key, kept)
        number = None if recent is None else recent.version_of(listing)
        if applied is None or recent is None or number is None or recent.concern(applied, number):
            return None
        return now

    async def list_topics(self, request: ListingRequest) -> TopicListingResult:
        """The topics of the namespace that have the request's selecting properties, as of now."""
        try:
            with reading_catalog():
                snapshot = await self._snapshot((request.namespace, request.mode))
                while not self._by.has_read(snapshot):
                    snapshot = await self._snapshot((request.namespace, request.mode))
        except PermitError as error:
            raise permits_refused("snapshot_memory") from error
        result = self._result(request.properties, snapshot)
        return result_of(await self._selected(request, snapshot), snapshot) if result is None else result

    async def describe(self, request: DescribeRequest) -> Details:
        """The current details of the given topics that the file has."""
        with reading_catalog():
            read = partial(in_thread, request.namespace, self._described, request)
            size = await read(described_bytes)
            async with request.lease(size):
                details: Details = await read(partial(describe, wants=request.wants))
                return details

    def read_now(self, query: Callable[[sqlite3.Connection], T]) -> T | None:
        """The result of a query of a few rows in the file as it is now; ``None`` if it cannot be read at once."""
        return self._watch.read(query)

    def topic_tables(self) -> TopicTables:
        """New tables of the topics of listings that this lister gave; for servers that need more than names."""
        from broker_core.catalog.snapshots.topic_tables import TopicTables  # only some servers do

        return TopicTables(self._catalog, self._kept)

    def _described(self, request: DescribeRequest, read: Callable[..., Any]) -> Any:
        with self._catalog.reading() as connection:
            return read(connection, request.namespace, request.names, request.ids)

    def _result(self, properties: Mapping[str, str], snapshot: Snapshot) -> TopicListingResult | None:
        """The topics of a snapshot that have the given selecting properties; ``None`` if it takes long to find them."""
        pairs = self._selecting(properties)
        if pairs and not snapshot.is_quick_to_select(pairs):
            return None
        self._count_ignored(properties, pairs)
        return result_of(snapshot.select(pairs) if pairs else snapshot.listing, snapshot)

    async def _selected(self, request: ListingRequest, snapshot: Snapshot) -> Selection:
        """The topics with the given properties, searched once for all requests that wait for it."""
        pairs = self._selecting(request.properties)
        self._count_ignored(request.properties, pairs)
        key = (id(snapshot), properties_text(pairs))
        if key not in self._selecting_now:
            await request.reserve(snapshot.selecting_bytes)
        selecting = self._selecting_now.get(key)
        if selecting is None:
            selecting = self._loop.create_task(in_thread(request.namespace, snapshot.select, pairs))
            self._selecting_now[key] = selecting
            selecting.add_done_callback(lambda _: self._selecting_now.pop(key, None))
        # Shielded: a cancelled request must not end the load of the others.
        return await asyncio.shield(selecting)

    def _selecting(self, properties: Mapping[str, str]) -> Mapping[str, str]:
        return {key: properties[key] for key in self._by.keys if key in properties}

    def _count_ignored(self, properties: Mapping[str, str], pairs: Mapping[str, str]) -> None:
        if len(properties) > len(pairs) and self._on_ignored is not None:
            self._on_ignored(len(properties) - len(pairs))

    def _check(self, key: SnapshotKey, made: Snapshot) -> None:
        """Have the shrink guard look at a listing that was read. Raises :exc:`ListingFailed`."""
        (namespace, mode), version, count = key, made.version, len(made.listing)
        question = f"{mode.name} of the catalogue"
        # The catalogue's own log accounts for all names that are gone, unless another file, or an old copy, is there.
        before = self._guard.versions_before(namespace, question, count)
        is_same = any(
            each.catalog_id == version.catalog_id and each.number <= version.number for each in before
        )
        self._guard.check(
            namespace, question, count, deletions=sys.maxsize if is_same else 0, versions=(version,)
        )

    # -- knowing what is current

    def _known(
        self,
        key: SnapshotKey,
        applied: TopicsPattern | None = None,
        properties: Mapping[str, str] = NO_PROPERTIES,
    ) -> KeptSnapshot | None:
        """The newest snapshot, if it is in memory, or quick to read; with ``applied`` also an older one, if the changes
        since do not concern a request with this pattern and these properties.
        """
        if not self._watch.look(self._turn.received):
            return None
        kept = self._current(key)
        if kept is None and applied is not None:
            kept = self._still_right(key, applied, properties)
        return kept or self._read_tiny(key)

    def _current(self, key: SnapshotKey) -> KeptSnapshot | None:
        """The kept snapshot, if it is of the newest version, as of the last look."""
        watch, kept = self._watch, self._kept.get(key)
        if kept is None:
            version = watch.version(key[0])
            if version is not None and not version.number:
                nothing = without_topics(watch.catalog_id, *key)
                self._check(key, nothing.snapshot)
                return nothing
            return None
        if kept.seen != watch.state:
            recent = None if kept.recent is None else self._recent(key, kept)
            version = watch.version(key[0]) if recent is None else recent.version
            if version is None or not version.same_state(kept.snapshot.version):
                return None
            kept.seen = watch.state
        self._kept.used(key)
        kept.requests += 1
        return kept

    def _still_right(
        self, key: SnapshotKey, applied: TopicsPattern, properties: Mapping[str, str]
    ) -> KeptSnapshot | None:
        """The kept snapshot of an older version, if the changes since do not concern a request with this pattern.

        It will be moved soon, for all changes until then.
        """
        kept = self._kept.get(key)
        recent = None if kept is None else self._recent(key, kept)
        if kept is None or recent is None:
            return None
        number = kept.snapshot.version.number
        if recent.concern(applied, number, by_properties=bool(properties)):
            return None
        if key not in self._moving_soon:
            self._moving_soon[key] = self._loop.call_later(_SOON, self._move, key)
        self._kept.used(key)
        kept.requests += 1
        return kept

    def _recent(self, key: SnapshotKey, kept: KeptSnapshot) -> RecentChanges | None:
        """The recent changes, as of the last look; ``None`` if they are not known at once."""
        if kept.recent is None:
            kept.recent = RecentChanges(kept.snapshot)
        if not self._follow(key, kept.recent):
            kept.recent = None
        return kept.recent

    def _follow(self, key: SnapshotKey, recent: RecentChanges) -> bool:
        """Read the changes since, up to the state that was seen last; false if that cannot be done at once."""
        seen = self._watch.state
        if recent.seen != seen:
            rows = self._watch.recent(key[0], recent.version, MOST_RECENT)
            if rows is None:
                return False
            recent.follow(rows, seen)
        return True

    def _carry(self, key: SnapshotKey, recent: RecentChanges, made: Snapshot) -> None:
        """Give a newer snapshot the known changes before it, if they are known to lead to it.

        They may also lead past it: often there is a further change by the time it is made.
        """
        kept = self._kept.get(key)
        if kept is None or kept.snapshot is not made or not self._follow(key, recent):
            return
        if not recent.version.same_state(made.version):
            rest = self._watch.recent(key[0], made.version, MOST_RECENT)
            if rest is None or not rest.version.same_state(recent.version):
                return
        recent.listed_by(made)
        kept.recent = recent

    def _move(self, key: SnapshotKey) -> None:
        """Read the newest snapshot, unless that was done meanwhile."""
        del self._moving_soon[key]
        kept = self._kept.get(key)
        if kept is None or kept.recent is None or key in self._reads:
            return
        if not kept.recent.version.same_state(kept.snapshot.version):
            self._begin_read(key)

    async def _snapshot(self, key: SnapshotKey) -> Snapshot:
        """A snapshot that was the newest after this call began."""
        self._clock += 1
        arrived = self._clock
        while True:
            if (kept := self._known(key)) is not None:
                return kept.snapshot
            began, read = self._reads.get(key) or self._begin_read(key)
            if read.done():
                # It is here until the loop has called `_read_ended`; awaiting it would not let the loop do so.
                began, read = self._begin_read(key)
            # Shielded: a cancelled request must not end the load of the others.
            snapshot = await asyncio.shield(read)
            if began >= arrived:
                return snapshot
            now = self._watch.version(key[0]) if self._watch.look() else None
            if now is not None and now.same_state(snapshot.version):
                return snapshot
            del snapshot, read  # the next one may need its memory

    # -- reading

    def _read_tiny(self, key: SnapshotKey) -> KeptSnapshot | None:
        """The newest snapshot of a namespace of few topics that is not in memory, if this turn has time to read it."""
        if key in self._reads or self._kept.known(key[0]) or not self._turn.has_time():
            return None
        permits: list[Permit | None] = []

        def permit_for(size: int) -> Permit | None:
            permits.append(self._kept.try_acquire(key, size))
            return permits[-1]

        read = self._watch.read(partial(self._by.read_tiny, key, permit_for), self._turn.received)
        if read is not None:
            self._keep(key, read[0], self._watch.state, read[1])
        else:  # what was read may be of a file that was written meanwhile
            for permit in filter(None, permits):
                permit.release()
        return self._kept.get(key)

    def _keep(self, key: SnapshotKey, made: Snapshot, seen: int, permit: Permit | None) -> None:
        """Keep a snapshot that was read, unless the shrink guard holds it. Raises :exc:`ListingFailed`."""
        try:
            self._check(key, made)
        except ListingFailed:
            if permit is not None:
                permit.release()
            raise
        self._kept.keep(key, made, seen, permit)

    def _begin_read(self, key: SnapshotKey) -> tuple[int, asyncio.Task[Snapshot]]:
        self._clock += 1
        task = self._loop.create_task(self._read(key))
        self._reads[key] = (self._clock, task)
        task.add_done_callback(lambda done: self._read_ended(key, done))
        return self._reads[key]

    def _read_ended(self, key: SnapshotKey, task: asyncio.Task[Snapshot]) -> None:
        if self._reads.get(key, (0, None))[1] is task:  # else a further read has its place already
            del self._reads[key]
        if not task.cancelled():
            task.exception()  # the waiting requests have it; all of them may have been cancelled

    async def _read(self, key: SnapshotKey) -> Snapshot:
        """The newest snapshot: permits first, then a place for loading, so that no load waits for permits."""
        if await self._watch.current():
            self._kept.drop_all()
        self._watch.look()
        seen, by = self._watch.state, self._by
        permit = self._kept.try_acquire_free(_ROOM) if self._at_once < _AT_ONCE else None
        self._at_once += permit is not None
        read: list[LoggedNames] = []
        made: Snapshot | int | None = None
        try:
            if permit is not None:
                made = await self._small_moves.moved(key, _ROOM)
            if made is None:
                room = 0 if permit is None else _ROOM
                known = self._kept.known(key[0])
                made = await in_thread(key[0], by.read_or_move, key, known, room, read)
                known.clear()  # while permits are waited for, their memory may become free
        except BaseException:
            if permit is not None:
                permit.release()
            raise
        finally:
            self._at_once -= permit is not None
        if not isinstance(made, Snapshot):
            if permit is not None:
                permit.release()
            permit = await self._kept.acquire(key, made)
            try:
                async with self._loads if made > SMALL else nullcontext():
                    seen = self._watch.state
                    known = self._kept.known(key[0])
                    made = await in_thread(key[0], by.read_or_move, key, known, None, read)
                assert isinstance(made, Snapshot)
            except BaseException:
                permit.release()
                raise
        if by is not self._by:
            if permit is not None:
                permit.release()
            return made
        former = self._kept.get(key)
        self._keep(key, made, seen, permit)
        if former is not None and former.recent is not None:
            self._carry(key, former.recent, made)
        if by.warm is not None:
            by.warm.changed(made)
        return made
