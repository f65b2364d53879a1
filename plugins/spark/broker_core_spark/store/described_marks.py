"""Marks as people read them: who does what since when, and whether it lives."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from broker_core_spark.store.build_and_gc_marks import (
    BUILD_GRACE,
    GC_GRACE,
    ActivityMark,
    live_marks,
    mark_owner,
    read_marks,
)
from broker_core_spark.store.store import Store

__all__ = ["activities", "described_mark"]


def described_mark(store: Store, mark: ActivityMark, now: datetime) -> str:
    """One mark in words. ``now`` is the store's time."""
    owner = mark_owner(store, mark)
    if owner is None:
        return (
            f"run {mark.run} of an earlier release, since {mark.file.modified.isoformat(timespec='seconds')}"
        )
    alive = owner.is_alive()
    silent = max(0, round((now - mark.signed).total_seconds()))
    life = {True: "it lives", False: "it has died", None: f"its last sign of life was {silent} s ago"}[alive]
    return f"{owner}; {life}"


def activities(store: Store) -> list[dict[str, Any]]:
    """Builds and ``gc`` under way, and marks that dead ones left, for ``status``.

    Nothing is written, so the time of this machine stands for the store's.
    """
    found = read_marks(store)
    now = datetime.now(UTC)
    live = {
        mark.file.path
        for kind, grace in (("build", BUILD_GRACE), ("gc", GC_GRACE))
        for mark in live_marks(store, found, kind, "", grace, now)
    }
    return [
        {
            "kind": mark.kind,
            "run": mark.run,
            "live": mark.file.path in live,
            "owner": described_mark(store, mark, now),
        }
        for mark in sorted(found, key=lambda mark: mark.file.modified)
    ]
