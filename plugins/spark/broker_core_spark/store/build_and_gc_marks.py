"""Marks of builds and of ``gc`` under way: small files that keep the two apart.

Each writes its own mark first and looks for the other's afterwards, so at least one of the two sees the other. A
killed build leaves its mark. A mark that is older than the time of grace does not count.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from broker_core_spark.store.store import Store
from broker_core_spark.store.stored_file import StoredFile

__all__ = ["BUILD_GRACE", "GC_GRACE", "MARKS", "ActivityMark", "live_marks", "read_marks", "write_mark"]

#: Time that a build may take. ``gc`` keeps the files of a build for so long.
BUILD_GRACE: Final = timedelta(hours=24)
#: Time that a ``gc`` may take, counted from before its mark exists. It stops deleting after half of it, because builds
#: begin again after the whole.
GC_GRACE: Final = timedelta(minutes=20)
MARKS: Final = "marks"


@dataclass(frozen=True, slots=True)
class ActivityMark:
    """A build or a ``gc`` under way. The time of the file is the store's."""

    kind: str
    file: StoredFile


def read_marks(store: Store) -> list[ActivityMark]:
    """All marks, those of dead builds included."""
    found = (
        ActivityMark(stored.path.partition("/")[2].partition("-")[0], stored) for stored in store.list(MARKS)
    )
    return [mark for mark in found if mark.kind in ("build", "gc")]


def write_mark(store: Store, kind: str) -> str:
    """Write a mark and return its path."""
    path = f"{MARKS}/{kind}-{secrets.token_hex(12)}"
    store.put_new(path, b"")
    return path


def live_marks(found: list[ActivityMark], kind: str, own: str, grace: timedelta) -> list[ActivityMark]:
    """The marks of a kind that are younger than ``grace``. The store's time of the mark ``own`` is now."""
    now = next((mark.file.modified for mark in found if mark.file.path == own), None)
    return [
        mark
        for mark in found
        if mark.kind == kind and mark.file.path != own and (now is None or now - mark.file.modified < grace)
    ]
