"""Stored snapshots of the catalogue's lister: reading a namespace from the folder, and storing it there."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator, Sequence
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

__all__ = ["WarmStart"]

#: Bytes that an added name takes in memory, about.
_CHANGED_NAME: Final = 512


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

    def expected_bytes(
        self, connection: sqlite3.Connection, namespace: NamespaceName, mode: Mode
    ) -> int | None:
        """About the bytes that the result of :meth:`read` takes in memory; ``None`` if there is none."""
        found = self._find(connection, namespace, mode)
        return None if found is None else found[0].nbytes + _CHANGED_NAME * found[1].count()

    def _find(
        self, connection: sqlite3.Connection, namespace: NamespaceName, mode: Mode
    ) -> tuple[SnapshotManifest, LoggedNames] | None:
        """A stored snapshot that is not read yet, and the changes from it to now, as the connection's transaction sees
        it; ``None`` unless reading and changing it is less work than reading the catalogue."""
        manifest = self._stored.find(namespace, mode, read_catalog_id(connection))
        if manifest is None:
            return None
        most = 50 + manifest.rows // 100
        has_keys = bool(self._property_keys)
        changes = read_name_changes(
            connection, namespace, manifest.catalog_version, most=most, properties=has_keys
        )
        if isinstance(changes, Gap) or changes.count() > most:
            self._stored.stale(manifest)
            return None
        return manifest, changes

    def read(self, connection: sqlite3.Connection, namespace: NamespaceName, mode: Mode) -> Snapshot | None:
        """The current namespace, made from its stored snapshot; ``None`` if there is no usable one."""
        found = self._find(connection, namespace, mode)
        if found is None:
            return None
        manifest, changes = found
        chunks = self._stored.read(manifest)
        if chunks is None:
            return None
        listing = listing_of(ListingData(namespace, mode, chunks))
        snapshot = Snapshot(changes.version, listing, self._property_keys)
        return snapshot.moved(changes) if changes else snapshot

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
        requests = self._kept.requests(listing.namespace, listing)
        chunks = data_of(listing).chunks
        return Stored(listing.namespace, listing.mode, snapshot.version, chunks, snapshot.nbytes, requests)
