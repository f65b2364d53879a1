"""Namespaces in memory, each at one version, in chunks that versions share: of the catalogue, or of a cluster."""

from __future__ import annotations

from broker_core.snapshots.snapshot import Snapshot, SnapshotChanges
from broker_core.snapshots.snapshot_cache import CachedSnapshot, SnapshotCache, result_of
from broker_core.snapshots.stored.manifest import SnapshotManifest
from broker_core.snapshots.stored.snapshot_writer import SnapshotWriter
from broker_core.snapshots.stored.stored_snapshots import LEAST_TOPICS, Stored, StoredSnapshots

__all__ = [
    "LEAST_TOPICS",
    "CachedSnapshot",
    "Snapshot",
    "SnapshotCache",
    "SnapshotChanges",
    "SnapshotManifest",
    "SnapshotWriter",
    "Stored",
    "StoredSnapshots",
    "result_of",
]
