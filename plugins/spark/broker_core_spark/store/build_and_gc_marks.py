"""Marks of builds and of gc that are under way: small files by which the two keep off each other.

Each writes its own mark first and then looks for the other's, so that at least one of two sees the other. A build that
was killed leaves a mark, which counts for nothing when it is older than the time of grace.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from broker_core_spark.store.store import Store
from broker_core_spark.store.stored_file import StoredFile

__all__ = ["BUILD_GRACE", "GC_GRACE", "MARKS", "ActivityMark", "live_marks", "read_marks", "write_mark"]

#: How long a build may take: its mark and its files are kept from ``gc`` for so long.
BUILD_GRACE: Final = timedelta(hours=24)
#: The same for a ``gc``: one that was killed must not keep builds off for long. It counts from before its mark is
#: there, and begins to delete nothing more when half of this is over, however long its reading took.
GC_GRACE: Final = timedelta(minutes=20)
MARKS: Final = "marks"


@dataclass(frozen=True, slots=True)
class ActivityMark:
    """A build or a gc that is under way: since when, by the store's own clock."""

    kind: str
    file: StoredFile


def read_marks(store: Store) -> list[ActivityMark]:
    """All marks, also of those that died."""
    found = (
        ActivityMark(stored.path.partition("/")[2].partition("-")[0], stored) for stored in store.list(MARKS)
    )
    return [mark for mark in found if mark.kind in ("build", "gc")]


def write_mark(store: Store, kind: str) -> str:
    """Write a mark and give its path."""
    path = f"{MARKS}/{kind}-{secrets.token_hex(12)}"
    store.put_new(path, b"")
    return path


def live_marks(found: list[ActivityMark], kind: str, own: str, grace: timedelta) -> list[ActivityMark]:
    """The marks of a kind that are younger than the time of grace, by the clock that wrote ``own``."""
    now = next((mark.file.modified for mark in found if mark.file.path == own), None)
    return [
        mark
        for mark in found
        if mark.kind == kind and mark.file.path != own and (now is None or now - mark.file.modified < grace)
    ]
