"""Live snapshots of the namespaces of a cluster of any kind, over a store that lists."""

from __future__ import annotations

from broker_core.upstream.snapshots.live_snapshots import LiveSnapshots
from broker_core.upstream.snapshots.snapshot_lister import ONE_BROKER, SnapshotLister
from broker_core.upstream.snapshots.snapshot_log import SnapshotLog, ViewOfNamespace
from broker_core.upstream.snapshots.store_contract import (
    SHARED,
    StoreListing,
    TopicStore,
    TopicUpdate,
    UpdateReceiver,
    View,
)

__all__ = [
    "ONE_BROKER",
    "SHARED",
    "LiveSnapshots",
    "SnapshotLister",
    "SnapshotLog",
    "StoreListing",
    "TopicStore",
    "TopicUpdate",
    "UpdateReceiver",
    "View",
    "ViewOfNamespace",
]
