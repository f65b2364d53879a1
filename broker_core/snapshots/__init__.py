"""Namespaces in memory, each at one version, in chunks that versions share: of the catalogue, or of a cluster."""

from __future__ import annotations

from broker_core.snapshots.snapshot import Snapshot, SnapshotChanges
from broker_core.snapshots.snapshot_cache import CachedSnapshot, SnapshotCache, result_of

__all__ = ["CachedSnapshot", "Snapshot", "SnapshotCache", "SnapshotChanges", "result_of"]
