"""Marks that ``gc --force`` removed, with the reason: their builds say it where they cannot be published."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Final

from broker_core_spark.errors import StoreFailed
from broker_core_spark.store.build_and_gc_marks import MARKS
from broker_core_spark.store.mark_owner import user_name
from broker_core_spark.store.store import Store

__all__ = ["note_removal", "removal_note"]

_LARGEST: Final = 16 * 1024  # bytes


def note_removal(store: Store, run: str, reason: str) -> None:
    """Note why the mark of a run is removed. A later ``gc`` removes the note, as any old file."""
    when = datetime.now(UTC).isoformat(timespec="seconds")
    note = {"reason": reason, "user": user_name(), "when": when}
    store.put_new(_path(run), json.dumps(note, sort_keys=True).encode())


def removal_note(store: Store, run: str) -> str:
    """Who removed the mark of a run and why, for the end of a message, or nothing."""
    try:
        note = json.loads(store.get(_path(run), _LARGEST) or b"{}")
        return f" ({note['user']} removed it by gc --force at {note['when']}: {note['reason']})"
    except (StoreFailed, ValueError, TypeError, KeyError, RecursionError):
        return ""


def _path(run: str) -> str:
    return f"{MARKS}/forced-{run}"
