"""Counts of log lines that were not written, by reason; the log of a process is one, and has one count."""

from __future__ import annotations

import threading
from typing import Final, Literal

__all__ = ["DroppedLineCount", "Reason", "dropped_lines"]

#: ``full``: earlier lines were not read; ``rate``: folded into the count of a later line; ``failed``: the
#: system did not take it (no space on the disk, the reader is gone).
Reason = Literal["full", "rate", "failed"]


class DroppedLineCount:
    """Counts by reason, from any thread; for a log that drops lines for these reasons."""

    def __init__(self, *reasons: Reason) -> None:
        self._lock = threading.Lock()
        self._counts: dict[str, int] = dict.fromkeys(map(str, reasons), 0)

    def add(self, reason: Reason, lines: int = 1) -> None:
        with self._lock:
            self._counts[reason] += lines

    def counts(self) -> dict[str, int]:
        """Every reason with its count, also if it is 0."""
        with self._lock:
            return dict(self._counts)


#: The counts of this process.
dropped_lines: Final = DroppedLineCount("full", "rate", "failed")
