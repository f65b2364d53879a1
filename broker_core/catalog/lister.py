"""Listing from the catalogue: one snapshot of a namespace for all who ask, always of the newest version.

A listing must see every change that was committed before it was asked for, also by another process. So each one looks
at the file (:class:`~.file_watch.FileWatch`, some microseconds on the event loop), then reads the namespace's version
where anything was committed, and only where that has changed the snapshot is moved by the change log, or read anew
where the log does not reach. Moving and reading run in a thread, once however many ask.

Every listing that was made here holds permits of the ``snapshots`` budget until nobody has it any more: a client that
reads its answer slowly pins the listing that it was answered from, also after a change has moved the snapshot on.
"""

from __future__ import annotations

import asyncio
import weakref
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Final

import pyarrow as pa
import structlog

from broker_core.catalog.change_log import read_changes
from broker_core.catalog.errors import CatalogError
from broker_core.catalog.file_watch import FileWatch
from broker_core.catalog.records import Gap
from broker_core.catalog.snapshot import Snapshot, load_snapshot, only_mode
from broker_core.catalog.store import SqliteCatalog
from broker_core.errors import ListingFailed, TooManyRequests
from broker_core.listing import Listing
from broker_core.listing_request import ListingRequest
from broker_core.listing_result import TopicListingResult
from broker_core.names import Mode, NamespaceName
from broker_core.permits import Permit, PermitBudget, PermitError
from broker_core.selection import Selection

__all__ = ["CatalogLister"]

_log = structlog.get_logger(__name__)

#: Namespaces read or moved at a time: each needs memory besides the budget until it is a snapshot.
_LOADS: Final = 2
#: Namespaces that do not fit into the budget, whose size is remembered.
_MOST_LARGE: Final = 1000

#: Bytes of a listing whose memory goes back to the system with it.
_WORTH_RELEASING: Final = 16 * 1024 * 1024
_RELEASE_DELAY: Final = 0.1  # seconds

_Key = tuple[NamespaceName, Mode]


class _Kept:
    """A snapshot in memory, its answer to a request without properties, and the state of the file it was seen at."""

    __slots__ = ("result", "seen", "snapshot")

    def __init__(self, snapshot: Snapshot, seen: int) -> None:
        self.snapshot = snapshot
        self.result = _result(snapshot.listing, snapshot)
        self.seen = seen


class CatalogLister:
    """The default lister of a broker without a cluster (:class:`~broker_core.listing_result.DefaultLister`).

    Made and used on one event loop. ``budget`` bounds the bytes of all listings; the least used snapshots make room,
    and a namespace that does not fit at all is read for each listing, one such at a time. ``property_keys`` are the
    properties that select: all given ones of these must be equal; ``on_ignored`` is told how many others a request had.
    """

    name: Final = "catalog"

    def __init__(
        self,
        catalog: SqliteCatalog,
        budget: PermitBudget,
        *,
        property_keys: Sequence[str] = (),
        on_ignored: Callable[[int], None] | None = None,
    ) -> None:
        self._catalog = catalog
        self._budget = budget
        self._property_keys = tuple(dict.fromkeys(property_keys))
        self._on_ignored = on_ignored
        self._watch = FileWatch(catalog)
        self._kept: OrderedDict[_Key, _Kept] = OrderedDict()
        self._reads: dict[_Key, tuple[int, asyncio.Task[Snapshot]]] = {}
        self._clock = 0  # counts requests and reads, to know which came first
        self._loads = asyncio.Semaphore(_LOADS)
        self._large: OrderedDict[_Key, None] = OrderedDict()
        self._large_lane = PermitBudget(1, queue_limit=0, timeout=budget.timeout, name="large snapshot")
        self._counted: weakref.WeakSet[Listing] = weakref.WeakSet()
        self._pins: dict[int, weakref.ref[Listing]] = {}
        self._next_pin = 0
        self._loop = asyncio.get_running_loop()

    def close(self) -> None:
        """Let go of all snapshots; what requests still have stays theirs."""
        for _, task in self._reads.values():
            task.cancel()
        self._watch.close()
        self._drop_all()

    # -- answering

    def list_now(self, request: ListingRequest) -> TopicListingResult | None:
        """The answer if the snapshot is in memory and nothing has changed since, else ``None``."""
        kept = self._current((request.namespace, request.mode))
        if kept is None:
            return None
        if request.properties:
            pairs = self._selecting(request.properties)
            if pairs:
                selection = kept.snapshot.selected_now(pairs)
                if selection is None:
                    return None
                self._count_ignored(request.properties, pairs)
                return _result(selection, kept.snapshot)
            self._count_ignored(request.properties, pairs)
        return kept.result

    async def list_topics(self, request: ListingRequest) -> TopicListingResult:
        """The topics of the namespace that have the request's selecting properties, as of now."""
        try:
            snapshot = await self._snapshot((request.namespace, request.mode))
        except CatalogError as error:
            raise ListingFailed(f"Cannot read the catalogue: {error}", reason="catalog") from error
        except PermitError as error:
            raise TooManyRequests(
                "Failed due to snapshot memory limit exceeded", reason="snapshot_memory"
            ) from error
        pairs = self._selecting(request.properties)
        self._count_ignored(request.properties, pairs)
        if not pairs:
            return _result(snapshot.listing, snapshot)
        selection = snapshot.selected_now(pairs)
        if selection is None:
            selection = await asyncio.to_thread(snapshot.select, pairs)
        return _result(selection, snapshot)

    def _selecting(self, properties: Mapping[str, str]) -> Mapping[str, str]:
        return {key: properties[key] for key in self._property_keys if key in properties}

    def _count_ignored(self, properties: Mapping[str, str], pairs: Mapping[str, str]) -> None:
        if len(properties) > len(pairs) and self._on_ignored is not None:
            self._on_ignored(len(properties) - len(pairs))

    # -- knowing what is current

    def _current(self, key: _Key) -> _Kept | None:
        """The kept snapshot, if it is of the newest version."""
        watch = self._watch
        if not watch.look():
            return None
        kept = self._kept.get(key)
        if kept is None:
            version = watch.version(key[0])
            if version is not None and not version.number:
                return _nothing(self._catalog.catalog_id, *key)
            return None
        if kept.seen != watch.state:
            version = watch.version(key[0])
            if version is None or not version.same_state(kept.snapshot.version):
                return None
            kept.seen = watch.state
        self._kept.move_to_end(key)
        return kept

    async def _snapshot(self, key: _Key) -> Snapshot:
        """A snapshot that was the newest after this call began."""
        self._clock += 1
        arrived = self._clock
        while True:
            kept = self._current(key)
            if kept is not None:
                return kept.snapshot
            began, read = self._reads.get(key) or self._begin_read(key)
            # Shielded: others may wait for it, and who goes away must not end it.
            snapshot = await asyncio.shield(read)
            if began >= arrived:
                return snapshot
            now = self._watch.version(key[0]) if self._watch.look() else None
            if now is not None and now.same_state(snapshot.version):
                return snapshot

    # -- reading

    def _begin_read(self, key: _Key) -> tuple[int, asyncio.Task[Snapshot]]:
        self._clock += 1
        task = self._loop.create_task(self._read(key))
        self._reads[key] = (self._clock, task)
        task.add_done_callback(lambda done: self._read_ended(key, done))
        return self._reads[key]

    def _read_ended(self, key: _Key, task: asyncio.Task[Snapshot]) -> None:
        del self._reads[key]
        if not task.cancelled():
            task.exception()  # who waited has it; nobody may have waited to the end

    async def _read(self, key: _Key) -> Snapshot:
        # One that does not fit waits until nobody has the last such listing any more, before it is read.
        lane = await self._large_lane.acquire(1) if key in self._large else None
        try:
            async with self._loads:
                if self._watch.replaced:
                    await asyncio.to_thread(self._catalog.reopen)
                    self._watch.reopen()
                    self._drop_all()
                seen = self._watch.state
                kept = self._kept.get(key)
                beside = (
                    self._kept.get((key[0], Mode.PERSISTENT)),
                    self._kept.get((key[0], Mode.NON_PERSISTENT)),
                )
                known = [entry.snapshot for entry in (kept, *beside) if entry is not None]
                del kept, beside
                snapshot = await asyncio.to_thread(self._read_or_move, key, known)
                if self._budget.fits(snapshot.nbytes):
                    await self._keep(key, snapshot, seen)
                else:
                    await self._pass_on(key, snapshot, lane)
                    lane = None  # the listing has it now
                return snapshot
        finally:
            if lane is not None:
                lane.release()

    def _read_or_move(self, key: _Key, known: list[Snapshot]) -> Snapshot:
        """The newest snapshot, made of one that is known where that is less work; in a thread.

        Takes what is in ``known`` away, so that this thread keeps none of it in memory.
        """
        namespace, mode = key
        with self._catalog.reading() as connection:
            # Topics of one domain alone are the same listing for "all", so the two share it.
            only = only_mode(connection, namespace) if mode is Mode.ALL else None
            mode = mode if only is None else only
            while known:
                old = known.pop(0)
                if old.listing.mode is not mode or old.worn:
                    continue
                changes = read_changes(connection, namespace, old.version)
                if not isinstance(changes, Gap) and old.worth_moving(changes):
                    return old.moved(changes.version, changes) if changes else old
            return load_snapshot(connection, namespace, mode, self._property_keys)

    # -- keeping within the budget

    async def _keep(self, key: _Key, snapshot: Snapshot, seen: int) -> None:
        self._large.pop(key, None)
        if snapshot.version.number == 0:
            return
        listing, size = snapshot.listing, snapshot.nbytes
        if listing not in self._counted:
            self._let_go(key)
            await asyncio.sleep(0)  # what nobody else has is gone then, and its permits are back
            while self._budget.available < size and self._kept:
                self._let_go(next(iter(self._kept)))
                await asyncio.sleep(0)
            # Else requests have the rest: their clients must read on.
            permit = self._budget.try_acquire(size) or await self._budget.acquire(size)
            self._pin(listing, permit)
        self._kept[key] = _Kept(snapshot, seen)
        self._kept.move_to_end(key)

    async def _pass_on(self, key: _Key, snapshot: Snapshot, lane: Permit | None) -> None:
        """For a namespace larger than the budget: it is not kept, and one at a time is in memory."""
        if key not in self._large:
            _log.warning(
                "namespace does not fit into limits.snapshots and is read for each listing",
                namespace=str(key[0]),
                bytes=snapshot.nbytes,
                limit=self._budget.maximum,
            )
            self._large[key] = None
            if len(self._large) > _MOST_LARGE:
                self._large.popitem(last=False)
        self._let_go(key)
        self._pin(snapshot.listing, lane or await self._large_lane.acquire(1))

    def _pin(self, listing: Listing, permit: Permit) -> None:
        """Hold ``permit`` for as long as anybody has ``listing``."""
        self._next_pin += 1
        number = self._next_pin
        self._counted.add(listing)
        self._pins[number] = weakref.ref(listing, lambda _: self._unpin_soon(number, permit))

    def _unpin_soon(self, number: int, permit: Permit) -> None:
        """Called wherever the last reference goes, in any thread and in the midst of anything."""
        try:
            self._loop.call_soon_threadsafe(self._unpin, number, permit)
        except RuntimeError:  # the loop is closed: nobody waits for permits any more
            self._pins.pop(number, None)

    def _unpin(self, number: int, permit: Permit) -> None:
        self._pins.pop(number, None)
        if permit.count > _WORTH_RELEASING or permit.budget is self._large_lane:
            # The pool would keep it. Some 2 ms; later, since another thread may be freeing it just now.
            self._loop.call_later(_RELEASE_DELAY, pa.default_memory_pool().release_unused)
        permit.release()

    def _let_go(self, key: _Key) -> None:
        """Forget a snapshot, and the others of the namespace that share its listing."""
        kept = self._kept.get(key)
        if kept is None:
            return
        listing = kept.snapshot.listing
        for mode in Mode:
            other = self._kept.get((key[0], mode))
            if other is not None and other.snapshot.listing is listing:
                del self._kept[key[0], mode]
        listing.forget()

    def _drop_all(self) -> None:
        while self._kept:
            self._let_go(next(iter(self._kept)))


def _result(topics: Listing | Selection, snapshot: Snapshot) -> TopicListingResult:
    return TopicListingResult.success(topics, version=str(snapshot.version))


@lru_cache(maxsize=256)
def _nothing(catalog_id: str, namespace: NamespaceName, mode: Mode) -> _Kept:
    """A namespace that never had a topic lists as empty, as brokers do."""
    return _Kept(Snapshot.of_nothing(catalog_id, namespace, mode), seen=0)
