"""The errors for stored files that are not taken, and the counts of what became of stored files."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Final

from broker_core.metrics.metrics import Metrics

__all__ = ["EVENTS", "FileCounts", "FolderUnusable", "Refused", "reason_of"]

#: What becomes of stored snapshots and their files; the values of the metric's label.
EVENTS: Final = ("read", "stale", "refused", "written", "write_failed", "removed")


class Refused(Exception):
    """A stored file that is not what it should be; the text says why. What it is a copy of is read."""


class FolderUnusable(Refused):
    """The folder of stored files itself is not to be used; the text says why, and what to do."""


def reason_of(error: Exception) -> str:
    """What went wrong, for the log: of an error of the system its words, without a number and a file's name."""
    return getattr(error, "strerror", None) or str(error)


class FileCounts:
    """How often each of :data:`EVENTS` happened; for any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts = dict.fromkeys(EVENTS, 0)

    def add(self, event: str, count: int = 1) -> None:
        """Count an event."""
        with self._lock:
            self._counts[event] += count

    def show(self, metrics: Metrics) -> None:
        """Declare their metric."""
        metrics.read_counter(
            "stored_snapshots",
            "Snapshots that are stored for the next start by what became of them; removed: files.",
            self.read,
            "event",
        )

    def read(self) -> Mapping[str, int]:
        """All counts as of now."""
        with self._lock:
            return dict(self._counts)
