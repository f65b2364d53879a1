"""Removing what no generation needs: old generations, and what builds left that failed or were killed.

Kept are the newest pointers, the generations that they name, all files of those, and whatever is younger than the time
of grace. While a build is under way nothing is removed at all: it may have found a file to be there already, and count
on it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from broker_core_spark.errors import DamagedFile, InvalidGeneration, NoSuchGeneration, StoreFailed
from broker_core_spark.format.manifest import manifest_name
from broker_core_spark.store.build_and_gc_marks import (
    BUILD_GRACE,
    GC_GRACE,
    MARKS,
    live_marks,
    read_marks,
    write_mark,
)
from broker_core_spark.store.published_pointers import GENERATION_ID, read_pointers
from broker_core_spark.store.read_manifest import read_manifest
from broker_core_spark.store.store import Store
from broker_core_spark.store.stored_file import StoredFile

__all__ = ["KEEP", "CollectedGarbage", "collect_garbage"]

KEEP: Final = 3
#: The folders of a store, in the order in which files may go: what is left by a gc that ends half-way is never a
#: generation that lacks a file.
_FOLDERS: Final = ("pointers", "manifests", "questions", "segments", "temporary", MARKS)


@dataclass(frozen=True, slots=True)
class CollectedGarbage:
    """What ``gc`` did: the files that it removed (or would have), and the ids of the generations that are kept."""

    removed: tuple[StoredFile, ...]
    kept: tuple[str, ...]
    dry_run: bool
    #: What is wrong with pointers that cannot be read.
    unreadable: tuple[str, ...] = ()
    #: Files that would go too and that the time of a gc was too short for: the next one goes on.
    left: int = 0

    @property
    def removed_bytes(self) -> int:
        return sum(file.size for file in self.removed)


def collect_garbage(
    store: Store, *, keep: int = KEEP, grace: timedelta = BUILD_GRACE, dry_run: bool = False
) -> CollectedGarbage:
    """Keep the last ``keep`` generations that were published, and remove what is neither theirs nor young.

    A mark or a file older than ``grace`` is that of a build that died. All of it, reading too, ends when half of the
    time is over for which builds wait for a ``gc``. Raises :exc:`StoreFailed` while a build is under way or where
    reading alone takes longer than that, and whatever reading a manifest raises: where it is not known what is needed,
    nothing is removed. A pointer that cannot be read may name any generation: as long as it would count among the last
    ``keep``, all generations of the store stay.
    """
    if keep < 1:
        raise ValueError("at least one generation is kept")
    if not any(True for folder in _FOLDERS for _ in store.list(folder)):
        return CollectedGarbage((), (), dry_run)  # nothing is there, and nothing shall be made
    # From before the mark is there: builds count its age, and may begin when it is old, whatever is still done here.
    time_left = _TimeLeft(store)
    own = write_mark(store, "gc")
    try:
        found = read_marks(store)
        builds = live_marks(found, "build", own, grace)
        if builds:
            raise StoreFailed(
                f"{store.uri}: a build is under way there since {min(mark.file.modified for mark in builds)}: nothing "
                f"was removed. If it died, its mark counts for nothing after the time of grace, {grace}"
            )
        now = next((mark.file.modified for mark in found if mark.file.path == own), None)
        if now is None:
            raise StoreFailed(f"{store.uri}: what was just written is not listed: nothing was removed")
        needed, kept, unreadable = _needed(store, keep, time_left)
        unneeded = _unneeded(store, needed | {own}, now - grace, time_left)
        removed = unneeded if dry_run else _delete(store, unneeded, time_left)
        return CollectedGarbage(tuple(removed), kept, dry_run, unreadable, len(unneeded) - len(removed))
    finally:
        store.delete(own)


class _TimeLeft:
    """Half of the time for which a gc keeps builds off; the other half is for the step that is under way at its end."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._ends = time.monotonic() + GC_GRACE.total_seconds() / 2

    def is_over(self) -> bool:
        return time.monotonic() >= self._ends

    def check(self) -> None:
        """Raise :exc:`StoreFailed` where nothing was deleted yet and nothing may be any more."""
        if self.is_over():
            raise StoreFailed(
                f"{self._store.uri}: to find what is needed took longer than {GC_GRACE / 2}, and builds begin again "
                "soon: nothing was removed. With a smaller --keep less is read; else run gc nearer to the store"
            )


def _delete(store: Store, files: list[StoredFile], time_left: _TimeLeft) -> list[StoredFile]:
    """Delete as many as the time of a gc allows; those that were deleted."""
    done: list[StoredFile] = []
    for file in files:
        if time_left.is_over():
            break  # builds may begin again soon: the next gc goes on
        store.delete(file.path)
        done.append(file)
    return done


def _needed(
    store: Store, keep: int, time_left: _TimeLeft
) -> tuple[set[str], tuple[str, ...], tuple[str, ...]]:
    """(the files that are needed, the generations that are kept, what is wrong with unreadable pointers)."""
    needed: set[str] = set()
    kept: list[str] = []
    unreadable: list[str] = []
    doubt = False
    for pointer in read_pointers(store):
        time_left.check()
        if isinstance(pointer, InvalidGeneration):
            unreadable.append(str(pointer))
            if len(kept) < keep:
                doubt = True
                needed.add(pointer.file)
            continue
        if pointer.generation not in kept:
            if len(kept) == keep:
                continue
            try:
                manifest = read_manifest(store, pointer.generation)
            except NoSuchGeneration:
                continue  # removed before, when it was too old; its pointer goes too
            kept.append(pointer.generation)
            needed.add(manifest_name(pointer.generation))
            needed.update(file.name for file in manifest.files)
        needed.add(pointer.path)
    if doubt:
        _keep_every(store, needed, kept, time_left)
    return needed, tuple(kept), tuple(unreadable)


def _keep_every(store: Store, needed: set[str], kept: list[str], time_left: _TimeLeft) -> None:
    """Add all generations that the store has. A manifest that is damaged stays, and names nothing."""
    for stored in store.list("manifests"):
        time_left.check()
        generation = stored.path.partition("/")[2].removesuffix(".json")
        if generation in kept or not GENERATION_ID.fullmatch(generation):
            continue
        needed.add(stored.path)
        try:
            manifest = read_manifest(store, generation)
        except (InvalidGeneration, NoSuchGeneration, DamagedFile):
            continue
        kept.append(generation)
        needed.update(file.name for file in manifest.files)


def _unneeded(store: Store, needed: set[str], before: datetime, time_left: _TimeLeft) -> list[StoredFile]:
    """The files that nothing needs and that are old enough, in the order in which they may go."""
    found: list[StoredFile] = []
    for folder in _FOLDERS:
        there = sorted(store.list(folder), key=lambda file: file.path)
        found += (file for file in there if file.path not in needed and file.modified <= before)
    time_left.check()
    return found
