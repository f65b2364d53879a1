"""Moves of snapshots after a few changes, which the event loop makes itself, chunk by chunk.

Handing so little work to a thread takes as long again, and requests that come meanwhile would wait longer for the
interpreter's lock than for one chunk.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from broker_core.catalog.snapshots.name_changes import LoggedNames
from broker_core.catalog.snapshots.recent_changes import KeptSnapshots, SnapshotKey
from broker_core.catalog.store.file_watch import FileWatch
from broker_core.catalog.store.log_rows import RecentRows
from broker_core.concurrency import in_turns
from broker_core.names import DOMAINS, Mode
from broker_core.snapshots import Snapshot

__all__ = ["SnapshotUpdates"]

#: Logged changes of a small move: they are looked up in one turn of the loop.
_MOST_ROWS: Final = 16
#: Names of a small move: one topic may have thousands of partitions.
_MOST_NAMES: Final = 32
#: Characters of its names and properties: all are read in one turn of the loop.
_MOST_TEXT: Final = 32 * 1024


class SnapshotUpdates:
    """Small moves of the snapshots of a cache, one at a time. For one event loop."""

    def __init__(self, kept: KeptSnapshots, watch: FileWatch) -> None:
        self._kept = kept
        self._watch = watch
        self._is_moving = False

    async def moved(self, key: SnapshotKey, room: int) -> Snapshot | None:
        """The newest snapshot, moved from the kept one; ``None`` if that is much work, or takes more than ``room``
        bytes, or another snapshot is being moved."""
        kept = self._kept.get(key)
        if kept is None or self._is_moving:
            return None
        own = kept.snapshot
        recent = self._watch.recent(key[0], own.version, _MOST_ROWS)
        changes = None if recent is None else _few(own, self._kept.known(key[0]), key[1], recent)
        if changes is None or own.moved_bytes(changes) > room:
            return None
        self._is_moving = True
        try:
            return await in_turns(own.moving(changes), key[0])
        finally:
            self._is_moving = False


def _few(own: Snapshot, known: Sequence[Snapshot], mode: Mode, recent: RecentRows) -> LoggedNames | None:
    """The changes from the kept snapshot of a mode to the newest version.

    ``None`` if they are many, or need a decision: a newer snapshot is known, whose chunks can be shared; or a listing
    of one domain, the only one of the namespace, may no longer be complete.
    """
    changes = LoggedNames(
        own.listing.namespace, own.version, recent.version, [row[1:] for row in recent.rows]
    )
    listed = own.listing.mode
    text = sum(len(part or "") for row in changes.rows for part in row[1:])
    if (
        text > _MOST_TEXT
        or changes.count() > _MOST_NAMES
        or any(other.version.number > own.version.number for other in known)
    ):
        return None
    if listed is not mode and not all(listed.lists(DOMAINS[row[0]]) for row in changes.rows):
        return None
    return changes
