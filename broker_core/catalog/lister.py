"""Listing from the catalogue: one snapshot of a namespace for all who ask, always of the newest version.

A listing must see every change that was committed before it was asked for, also by another process. SQLite tells
whether anybody committed anything in two microseconds (``PRAGMA data_version``), so that is asked each time, on the
event loop; then the namespace's version is read where it may have changed, and only when it has is the snapshot moved,
by the change log, or read anew where the log does not reach. Moving and reading run in a thread, once however many ask.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import structlog

from broker_core.catalog.change_log import read_changes, read_version
from broker_core.catalog.errors import CatalogError
from broker_core.catalog.records import CatalogVersion, Gap
from broker_core.catalog.snapshot import Snapshot, load_snapshot
from broker_core.catalog.store import SqliteCatalog
from broker_core.errors import ListingFailed
from broker_core.listing_request import ListingRequest
from broker_core.listing_result import TopicListingResult
from broker_core.names import Mode, NamespaceName
from broker_core.permits import Permit, PermitBudget

__all__ = ["CatalogLister"]

_log = structlog.get_logger(__name__)

#: Namespaces read or moved at a time: each needs memory of its own until it is a snapshot.
_LOADS: Final = 2
#: Changes that are worth moving a snapshot for; beyond, and beyond a twentieth of it, reading it anew is quicker.
_FEW_CHANGES: Final = 1000

_Key = tuple[NamespaceName, Mode]


class _Kept:
    """A snapshot in memory, and the state of the file that it was last compared with."""

    __slots__ = ("permit", "result", "seen", "snapshot")

    def __init__(self, snapshot: Snapshot, result: TopicListingResult, permit: Permit, seen: int) -> None:
        self.snapshot = snapshot
        self.result = result
        self.permit = permit
        self.seen = seen


class CatalogLister:
    """The default lister of a broker without a cluster. Runs on one event loop.

    ``budget`` bounds the bytes of all snapshots; the least used make room, and a namespace that does not fit is read
    for each listing. ``property_keys`` are the properties that select: all given ones of these must be equal;
    ``on_ignored`` is told how many others a request had.
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
        self._property_keys = tuple(property_keys)
        self._on_ignored = on_ignored
        self._kept: OrderedDict[_Key, _Kept] = OrderedDict()
        self._reads: dict[_Key, tuple[int, asyncio.Task[Snapshot]]] = {}
        self._clock = 0  # counts requests and reads, to know which came first
        self._loads = asyncio.Semaphore(_LOADS)
        self._reader: sqlite3.Connection | None = catalog.connect(busy_timeout=0.0)
        self._data_version = -1
        self._seen = 0  # counts the states of the file that were noticed

    def close(self) -> None:
        """Let go of all snapshots."""
        for _, task in self._reads.values():
            task.cancel()
        if self._reader is not None:
            self._reader.close()
            self._reader = None
        while self._kept:
            self._kept.popitem()[1].permit.release()

    def list_now(self, request: ListingRequest) -> TopicListingResult | None:
        """The answer if the snapshot is in memory and nothing has changed since, else ``None``."""
        kept = self._current((request.namespace, request.mode))
        if kept is None:
            return None
        if request.properties:
            pairs = self._selecting(request.properties)
            if pairs:
                return self._result(kept.snapshot, pairs)
        return kept.result

    async def list_topics(self, request: ListingRequest) -> TopicListingResult:
        """The topics of the namespace that have the request's selecting properties, as of now."""
        try:
            snapshot = await self._snapshot((request.namespace, request.mode))
        except CatalogError as error:
            raise ListingFailed(f"Cannot read the catalogue: {error}", reason="catalog") from error
        return self._result(snapshot, self._selecting(request.properties))

    def _selecting(self, properties: Mapping[str, str]) -> Mapping[str, str]:
        pairs = {key: properties[key] for key in self._property_keys if key in properties}
        ignored = len(properties) - len(pairs)
        if ignored and self._on_ignored is not None:
            self._on_ignored(ignored)
        return pairs

    def _result(self, snapshot: Snapshot, pairs: Mapping[str, str]) -> TopicListingResult:
        topics = snapshot.select(pairs) if pairs else snapshot.listing
        version = CatalogVersion(self._catalog.catalog_id, snapshot.version)
        return TopicListingResult.success(topics, version=str(version))

    def _current(self, key: _Key) -> _Kept | None:
        """The kept snapshot, if it is of the newest version; reads the file, so quickly that it may be on the loop."""
        kept = self._kept.get(key)
        if kept is None or self._reader is None:
            return None
        try:
            (data_version,) = self._reader.execute("PRAGMA data_version").fetchone()
            if data_version != self._data_version:
                self._data_version = data_version
                self._seen += 1
            if kept.seen != self._seen:
                if read_version(self._reader, key[0]) != kept.snapshot.version:
                    return None
                kept.seen = self._seen
        except sqlite3.Error:
            return None  # locked for a moment, or worse: who reads in a thread waits, and says what is wrong
        self._kept.move_to_end(key)
        return kept

    async def _snapshot(self, key: _Key) -> Snapshot:
        """A snapshot that was read after this call began."""
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

    def _begin_read(self, key: _Key) -> tuple[int, asyncio.Task[Snapshot]]:
        self._clock += 1
        task = asyncio.get_running_loop().create_task(self._read(key))
        self._reads[key] = (self._clock, task)
        task.add_done_callback(lambda done: self._read_ended(key, done))
        return self._reads[key]

    def _read_ended(self, key: _Key, task: asyncio.Task[Snapshot]) -> None:
        del self._reads[key]
        if not task.cancelled():
            task.exception()  # who waited has it; nobody may have waited to the end

    async def _read(self, key: _Key) -> Snapshot:
        async with self._loads:
            kept = self._kept.get(key)
            seen = self._seen
            old = None if kept is None else kept.snapshot
            snapshot = await asyncio.to_thread(self._read_or_move, key, old)
        self._keep(key, snapshot, seen)
        return snapshot

    def _read_or_move(self, key: _Key, old: Snapshot | None) -> Snapshot:
        namespace, mode = key
        with self._catalog.reading() as connection:
            if old is not None:
                since = CatalogVersion(self._catalog.catalog_id, old.version)
                changes = read_changes(connection, self._catalog.catalog_id, namespace, since)
                if not isinstance(changes, Gap) and len(changes) <= max(_FEW_CHANGES, len(old.listing) // 20):
                    return old.moved(changes.version.number, changes)
            return load_snapshot(connection, namespace, mode, self._property_keys)

    def _keep(self, key: _Key, snapshot: Snapshot, seen: int) -> None:
        old = self._kept.pop(key, None)
        if old is not None:
            old.permit.release()
        size = snapshot.nbytes
        if snapshot.version == 0 or not self._budget.fits(size):
            return  # nothing to keep; or too large, and read each time
        permit = self._budget.try_acquire(size)
        while permit is None and self._kept:
            _, least_used = self._kept.popitem(last=False)
            least_used.permit.release()
            permit = self._budget.try_acquire(size)
        if permit is None:
            _log.info("snapshot does not fit", namespace=str(key[0]), bytes=size)
            return
        self._kept[key] = _Kept(snapshot, self._result(snapshot, {}), permit, seen)
