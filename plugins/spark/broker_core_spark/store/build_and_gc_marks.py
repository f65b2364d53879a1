"""Marks of builds and of ``gc`` under way: small files that keep the two apart, each a lease by its age.

Each writes its own mark first and looks for the other's afterwards, so at least one of the two sees the other. A build
renews its lease by signs of life, a file beside its mark that each replaces. A mark counts until its last sign is older
than the lease, by the time of the store: a killed build holds nothing up for longer.
"""

from __future__ import annotations

import os
import secrets
import socket
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from broker_core_spark.store.store import Store, StoredFile

__all__ = [
    "BUILD_GRACE",
    "GC_GRACE",
    "MARKS",
    "SILENCE",
    "ActivityMark",
    "activities",
    "boot_seconds",
    "described_mark",
    "new_run",
    "read_marks",
    "sign_path",
    "user_name",
    "write_mark",
]

#: Unneeded files stay for so long.
BUILD_GRACE: Final = timedelta(hours=24)
#: The lease of a build: the time without a sign of life after which it counts as dead.
SILENCE: Final = timedelta(minutes=10)
#: The lease of a ``gc``, counted from before its mark exists. It stops deleting after half of it, because builds begin
#: again after the whole.
GC_GRACE: Final = timedelta(minutes=20)
MARKS: Final = "marks"


@dataclass(frozen=True, slots=True)
class ActivityMark:
    """A build or a ``gc`` under way. ``silent`` is the time since its last sign of life, by the store's time."""

    kind: str
    run: str
    file: StoredFile
    silent: timedelta

    @property
    def is_live(self) -> bool:
        """Whether its lease has not ended."""
        return self.silent < (SILENCE if self.kind == "build" else GC_GRACE)


def new_run() -> str:
    """The id of a run, which its mark, its signs of life and its staged files have."""
    return secrets.token_hex(12)


def user_name() -> str:
    """The name of this process's user, or its number if the system has no name for it."""
    try:
        import pwd

        return pwd.getpwuid(os.getuid()).pw_name
    except (KeyError, ImportError):
        return f"uid {os.getuid()}" if hasattr(os, "getuid") else "somebody"


def boot_seconds() -> float:
    """Seconds of a clock that goes on while the machine sleeps."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def read_marks(store: Store, run: str = "") -> list[ActivityMark]:
    """All marks, also of dead builds.

    The store's time is that of the last sign of ``run``, which has just written its mark. Without one the time of this
    machine stands for it.
    """
    stored = [(*_kind_and_run(file), file) for file in store.list(MARKS)]
    signs: dict[str, list[datetime]] = {}
    for _, signed, file in stored:
        signs.setdefault(signed, []).append(file.modified)
    now = max(signs.get(run, [datetime.now(UTC)]))
    return [
        ActivityMark(kind, signed, file, now - max(signs[signed]))
        for kind, signed, file in stored
        if kind in ("build", "gc")
    ]


def _kind_and_run(file: StoredFile) -> tuple[str, str]:
    kind, _, rest = file.path.partition("/")[2].partition("-")
    return kind, rest.partition("-")[0]


def write_mark(store: Store, kind: str, run: str | None = None) -> str:
    """Write a mark of this process, with words for people, and return its path."""
    run = run or new_run()
    path = f"{MARKS}/{kind}-{run}"
    began = datetime.now(UTC).isoformat(timespec="seconds")
    words = f"run {run} of {user_name()} on {socket.gethostname()}, process {os.getpid()}, since {began}"
    store.put_new(path, words.encode())
    return path


def sign_path(run: str) -> str:
    """The file of a run's last sign of life, which is no mark: no sign brings a removed mark back."""
    return f"{MARKS}/sign-{run}"


def described_mark(store: Store, mark: ActivityMark) -> str:
    """The description of a mark, for people."""
    data = store.get(mark.file.path, limit=16 * 1024) or b""
    words = data.decode(errors="replace") if data and data.isascii() else f"run {mark.run}"
    return f"{words}; its last sign of life was {max(0, round(mark.silent.total_seconds()))} s ago"


def activities(store: Store) -> list[dict[str, Any]]:
    """Builds and ``gc`` under way, and marks that dead ones left, for ``status``, which writes nothing."""
    return [
        {"kind": mark.kind, "run": mark.run, "live": mark.is_live, "owner": described_mark(store, mark)}
        for mark in sorted(read_marks(store), key=lambda mark: mark.file.modified)
    ]
