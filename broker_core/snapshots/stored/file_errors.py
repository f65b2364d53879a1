"""The errors for stored files that are refused, and the counts of events of stored files."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Final

from broker_core.metrics import Metrics

__all__ = ["EVENTS", "FileCounts", "FolderUnusable", "RefusedFile", "reason_of"]

#: The events of stored snapshots and their files; the values of the metric's label.
EVENTS: Final = ("read", "stale", "refused", "written", "write_failed", "removed")


class RefusedFile(Exception):
    """Error of a stored file that is not what it should be; its text says why. The original is read instead."""


class FolderUnusable(RefusedFile):
    """The folder of stored files itself cannot be used; the text says why, and what to do."""


def reason_of(error: Exception) -> str:
    """The reason of an error, for the log: of a system error its words, without number and file name."""
    return getattr(error, "strerror", None) or str(error)


class FileCounts:
    """Counts of each of :data:`EVENTS`; for any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts = dict.fromkeys(EVENTS, 0)

    def add(self, event: str, count: int = 1) -> None:
        """Count an event."""
        with self._lock:
            self._counts[event] += count

    def show(self, metrics: Metrics) -> None:
        """Declare the metric of the counts."""
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
