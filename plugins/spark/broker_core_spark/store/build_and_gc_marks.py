"""Marks of builds and of ``gc`` under way: small files that keep the two apart.

Each writes its own mark first and looks for the other's afterwards, so at least one of the two sees the other. A mark
names its owner. A build gives signs of life beside its mark. A killed one leaves its mark, which counts for nothing
once its owner is known to be dead, or has given no sign for :data:`SILENCE`.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from broker_core_spark.store.mark_owner import MarkOwner
from broker_core_spark.store.store import Store
from broker_core_spark.store.stored_file import StoredFile

__all__ = [
    "BUILD_GRACE",
    "GC_GRACE",
    "MARKS",
    "SILENCE",
    "ActivityMark",
    "live_marks",
    "mark_owner",
    "new_run",
    "read_marks",
    "sign_path",
    "write_mark",
]

#: Time that a build of an earlier release may take, whose mark has no owner. Unneeded files stay for so long too.
BUILD_GRACE: Final = timedelta(hours=24)
#: Time without a sign of life after which a build counts as dead.
SILENCE: Final = timedelta(minutes=10)
#: Time that a ``gc`` may take, counted from before its mark exists. It stops deleting after half of it, because builds
#: begin again after the whole.
GC_GRACE: Final = timedelta(minutes=20)
MARKS: Final = "marks"
_LARGEST: Final = 16 * 1024  # bytes of a mark


@dataclass(frozen=True, slots=True)
class ActivityMark:
    """A build or a ``gc`` under way. ``signed`` is the last sign of life, in the store's time."""

    kind: str
    run: str
    file: StoredFile
    signed: datetime


def new_run() -> str:
    """The id of a run, which its mark, its signs of life and its staged files have."""
    return secrets.token_hex(12)


def read_marks(store: Store) -> list[ActivityMark]:
    """All marks, those of dead builds included."""
    stored = list(store.list(MARKS))
    signs: dict[str, datetime] = {}
    for file in stored:
        kind, run = _kind_and_run(file)
        if kind == "sign":
            signs[run] = max(signs.get(run, file.modified), file.modified)
    found = []
    for file in stored:
        kind, run = _kind_and_run(file)
        if kind in ("build", "gc"):
            found.append(ActivityMark(kind, run, file, max(signs.get(run, file.modified), file.modified)))
    return found


def _kind_and_run(file: StoredFile) -> tuple[str, str]:
    kind, _, rest = file.path.partition("/")[2].partition("-")
    return kind, rest.partition("-")[0]


def write_mark(store: Store, kind: str, run: str | None = None) -> str:
    """Write a mark of this process and return its path."""
    run = run or new_run()
    path = f"{MARKS}/{kind}-{run}"
    store.put_new(path, MarkOwner.this_process(run).to_bytes())
    return path


def sign_path(run: str, number: int) -> str:
    """The file of a run's sign of life. A new one is a new file, so no sign brings a removed mark back."""
    return f"{MARKS}/sign-{run}-{number}"


def mark_owner(store: Store, mark: ActivityMark) -> MarkOwner | None:
    """The owner of a mark. ``None`` for a mark of an earlier release, and one that has gone."""
    return MarkOwner.parse(store.get(mark.file.path, _LARGEST))


def live_marks(
    store: Store,
    found: Iterable[ActivityMark],
    kind: str,
    own: str,
    grace: timedelta,
    now: datetime | None = None,
) -> list[ActivityMark]:
    """The marks of a kind whose owners may be alive. ``now`` is by default the store's time of the mark ``own``.

    ``grace`` is for marks that are not signed: those of a ``gc``, and those without an owner.
    """
    found = list(found)
    now = now or next((mark.file.modified for mark in found if mark.file.path == own), None)
    live = []
    for mark in found:
        if mark.kind != kind or mark.file.path == own:
            continue
        owner = mark_owner(store, mark)
        if owner is not None and owner.is_alive() is False:
            continue
        limit = SILENCE if owner is not None and kind == "build" else grace
        if now is None or now - mark.signed < limit:
            live.append(mark)
    return live
