"""Stored snapshots of the catalogue's lister: reading a namespace from the folder, and storing it there."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from broker_core.catalog.snapshots.name_changes import LoggedNames, read_name_changes
from broker_core.catalog.snapshots.recent_changes import KeptSnapshots, SnapshotKey
from broker_core.catalog.store.log_rows import read_catalog_id
from broker_core.change_log import Gap
from broker_core.listing import ListingData, data_of, listing_of
from broker_core.names import Mode, NamespaceName
from broker_core.snapshots import (
    LEAST_TOPICS,
    Snapshot,
    SnapshotManifest,
    SnapshotWriter,
    Stored,
    StoredSnapshots,
)

__all__ = ["FoundSnapshot", "WarmStart"]

#: Bytes that an added name takes in memory, about.
_CHANGED_NAME: Final = 512


@dataclass(frozen=True, slots=True)
class FoundSnapshot:
    """A stored snapshot that is not read yet, and the changes from it to the catalogue's current state."""

    manifest: SnapshotManifest
    changes: LoggedNames

    @property
    def expected_bytes(self) -> int:
        """About the bytes that the current snapshot takes in memory."""
        return self.manifest.nbytes + _CHANGED_NAME * self.changed_names

    @property
    def changed_names(self) -> int:
        """How many names the changes are about."""
        return self.changes.count()

    @property
    def is_worth_reading(self) -> bool:
        """Whether reading and changing it is less work than reading the catalogue."""
        return self.changed_names <= _worth_changing(self.manifest)


def _worth_changing(manifest: SnapshotManifest) -> int:
    """Changed names up to which reading a stored snapshot and changing it is less work than reading the catalogue."""
    return 50 + manifest.rows // 100


class WarmStart:
    """The stored snapshots of one lister. Made on its event loop; reading is for any thread."""

    def __init__(
        self, stored: StoredSnapshots, kept: KeptSnapshots, property_keys: Sequence[str] = ()
    ) -> None:
        self._stored = stored
        self._property_keys = tuple(property_keys)
        self._kept = kept
        self._writer: SnapshotWriter[SnapshotKey] = SnapshotWriter(stored, self._current, self._every)

    def of_keys(self, property_keys: Sequence[str]) -> WarmStart:
        """The warm start for other properties, in place of this one."""
        return WarmStart(self._stored.of_keys(property_keys), self._kept, property_keys)

    # -- in a thread

    def find(
        self, connection: sqlite3.Connection, namespace: NamespaceName, mode: Mode
    ) -> FoundSnapshot | None:
        """The stored snapshot that the change log leads from to now, as the connection's transaction sees it."""
        manifest = self._stored.find(namespace, mode, read_catalog_id(connection))
        if manifest is None:
            return None
        most = _worth_changing(manifest)
        has_keys = bool(self._property_keys)
        changes = read_name_changes(
            connection, namespace, manifest.catalog_version, most=most, properties=has_keys
        )
        found = None if isinstance(changes, Gap) else FoundSnapshot(manifest, changes)
        if found is None or not found.is_worth_reading:
            self._stored.stale(manifest)
            return None
        return found

    def read(self, connection: sqlite3.Connection, namespace: NamespaceName, mode: Mode) -> Snapshot | None:
        """The current namespace, made from its stored snapshot; ``None`` if there is no usable one."""
        found = self.find(connection, namespace, mode)
        chunks = None if found is None else self._stored.read(found.manifest)
        if found is None or chunks is None:
            return None
        version = found.changes.version
        snapshot = Snapshot(version, listing_of(ListingData(namespace, mode, chunks)), self._property_keys)
        return snapshot.moved(found.changes) if found.changes else snapshot

    # -- on the event loop

    async def most_frequent(self, catalog_id: str) -> list[tuple[SnapshotKey, int]]:
        """The stored namespaces, the most requested first, with the bytes that they take in memory."""
        manifests = await asyncio.to_thread(self._stored.most_frequent, catalog_id)
        return [(manifest.key, manifest.nbytes) for manifest in manifests]

    def changed(self, snapshot: Snapshot) -> None:
        """Note that a new snapshot is in memory, to be stored."""
        listing = snapshot.listing
        if len(listing) >= LEAST_TOPICS:
            self._writer.changed((listing.namespace, listing.mode))

    async def stop(self, within: float) -> None:
        """Store the snapshots in memory, for at most ``within`` seconds."""
        await self._writer.stop(within)

    def _current(self, key: SnapshotKey) -> Stored | None:
        namespace, mode = key
        for snapshot in self._kept.known(namespace):
            if snapshot.listing.mode is mode:
                return self._stored_of(snapshot)
        return None

    def _every(self) -> Iterator[Stored]:
        seen: set[SnapshotKey] = set()
        for snapshot in self._kept.snapshots():
            key = snapshot.listing.namespace, snapshot.listing.mode
            if len(snapshot.listing) >= LEAST_TOPICS and key not in seen:
                seen.add(key)
                yield self._stored_of(snapshot)

    def _stored_of(self, snapshot: Snapshot) -> Stored:
        listing = snapshot.listing
        asked = self._kept.asked(listing.namespace, listing)
        chunks = data_of(listing).chunks
        return Stored(listing.namespace, listing.mode, snapshot.version, chunks, snapshot.nbytes, asked)
