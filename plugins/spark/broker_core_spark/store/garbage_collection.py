"""Garbage collection: removing old generations, and files that failed or killed builds left.

The newest pointers, their generations, the generations' files and all young files stay. During a build nothing is
removed: the build may rely on a file that it found. The mark of a dead build goes first, so that it cannot be published
should it live after all; then its staged files go.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from broker_core_spark.errors import DamagedFile, InvalidGeneration, NoSuchGeneration, StoreFailed
from broker_core_spark.format import PATCHES, manifest_name
from broker_core_spark.store.build_and_gc_marks import (
    BUILD_GRACE,
    GC_GRACE,
    MARKS,
    SILENCE,
    described_mark,
    new_run,
    read_marks,
    sign_path,
    write_mark,
)
from broker_core_spark.store.build_records import BUILDS, LEARNED, build_record_paths, learned_paths
from broker_core_spark.store.published_pointers import GENERATION_ID, read_pointers
from broker_core_spark.store.store import PROBE, Store, StoredFile
from broker_core_spark.store.stored_manifest import files_of
from broker_core_spark.store.table_changes_file import CHANGES

__all__ = ["KEEP", "CollectedGarbage", "collect_garbage"]

KEEP: Final = 3
#: Folders in the order of deletion. After an interrupted ``gc`` no generation lacks a file.
_FOLDERS: Final = (
    "pointers",
    CHANGES,
    BUILDS,
    "manifests",
    "questions",
    PATCHES,
    "segments",
    "postings",
    LEARNED,
    "temporary",
    MARKS,
)
#: Files that a build writes before its mark is there: the check of the store, and the mark itself under another name.
_BEFORE_MARKS: Final = (PROBE, "temporary/part-")


@dataclass(frozen=True, slots=True)
class CollectedGarbage:
    """The result of ``gc``: the removed files (in a dry run those to remove), and the ids of the kept generations."""

    removed: tuple[StoredFile, ...]
    kept: tuple[str, ...]
    #: Faults of unreadable pointers.
    unreadable: tuple[str, ...] = ()
    #: Number of files that the next ``gc`` has to remove, because the time was over.
    left: int = 0


def collect_garbage(
    store: Store,
    *,
    keep: int = KEEP,
    grace: timedelta = BUILD_GRACE,
    dry_run: bool = False,
) -> CollectedGarbage:
    """Keep the last ``keep`` published generations and all files younger than ``grace``. Remove the rest.

    Unfinished files and probes of a build that has no mark yet stay for ten minutes, whatever ``grace`` is.

    Reading and deleting end after half of the time for which builds wait for a ``gc``.

    An unreadable pointer may name any generation. While it counts among the last ``keep``, all generations stay.

    Raises :exc:`StoreFailed` while a build is under way and if reading takes too long. Raises the errors of reading a
    manifest: without it the needed files are unknown, and nothing is removed.
    """
    if keep < 1:
        raise ValueError("at least one generation is kept")
    if not any(True for folder in _FOLDERS for _ in store.list(folder)):
        return CollectedGarbage((), ())  # an empty store stays without a mark
    # Half of the time for which builds wait: the other half is for the last step. It runs from before the mark exists,
    # because builds count the age of the mark.
    ends = time.monotonic() + GC_GRACE.total_seconds() / 2
    run = new_run()
    own = write_mark(store, "gc", run)
    try:
        found = read_marks(store, run)
        now = next((mark.file.modified for mark in found if mark.file.path == own), None)
        if now is None:
            raise StoreFailed(f"{store.uri}: what was just written is not listed: nothing was removed")
        dead = [mark for mark in found if mark.kind == "build"]
        for mark in dead:
            if mark.is_live:
                raise StoreFailed(
                    f"{store.uri}: a build is under way there: {described_mark(store, mark)}: nothing was removed. "
                    f"A build that gives no sign of life for {SILENCE.total_seconds():g} seconds is dead"
                )
        for mark in () if dry_run else dead:
            store.delete(mark.file.path)
        needed, kept, unreadable = _needed(store, keep, ends)
        needed.update(learned_paths(store)[:keep])
        needed.update(file.path for file in store.list(CHANGES) if file.path[len(CHANGES) + 1 :][:64] in kept)
        needed |= {own, *(mark.file.path for mark in dead)}
        staged = tuple(
            start for mark in dead for start in (f"temporary/stage-{mark.run}-", sign_path(mark.run))
        )
        long_enough = max(grace, SILENCE)
        unneeded = [
            file
            for folder in _FOLDERS
            for file in sorted(store.list(folder), key=lambda file: file.path)
            if file.path not in needed
            and (
                file.path.startswith(staged)
                or file.modified <= now - (long_enough if file.path.startswith(_BEFORE_MARKS) else grace)
            )
        ]
        _check_time(store, ends)
        removed: list[StoredFile] = []
        for file in unneeded:
            if not dry_run:
                if time.monotonic() >= ends:
                    break  # the next gc goes on
                store.delete(file.path)
            removed.append(file)
        left = len(unneeded) - len(removed)
        return CollectedGarbage((*removed, *(mark.file for mark in dead)), kept, unreadable, left)
    finally:
        store.delete(own)


def _check_time(store: Store, ends: float) -> None:
    """Raise :exc:`StoreFailed` if the time is over before anything was deleted."""
    if time.monotonic() >= ends:
        raise StoreFailed(
            f"{store.uri}: to find what is needed took longer than {GC_GRACE / 2}, and builds begin again "
            "soon: nothing was removed. With a smaller --keep less is read; else run gc nearer to the store"
        )


def _needed(store: Store, keep: int, ends: float) -> tuple[set[str], tuple[str, ...], tuple[str, ...]]:
    """(the needed files, the kept generations, the faults of unreadable pointers).

    An unreadable pointer among the last ``keep`` keeps all generations of the store.
    """
    needed: set[str] = set()
    kept: list[str] = []
    unreadable: list[str] = []
    doubt = False
    for pointer in read_pointers(store):
        _check_time(store, ends)
        if isinstance(pointer, InvalidGeneration):
            unreadable.append(str(pointer))
            if len(kept) < keep:
                doubt = True
                needed.add(pointer.file)
        elif pointer.generation in kept:
            needed.add(pointer.path)
        elif len(kept) < keep:
            # An earlier gc may have removed the generation. Then its pointer goes too.
            with suppress(NoSuchGeneration):
                needed |= {*files_of(store, pointer.generation), pointer.path}
                needed.update((manifest_name(pointer.generation), *build_record_paths(pointer.generation)))
                kept.append(pointer.generation)
    for stored in store.list("manifests") if doubt else ():
        _check_time(store, ends)
        generation = stored.path.partition("/")[2].removesuffix(".json")
        if generation not in kept and GENERATION_ID.fullmatch(generation):
            needed.update((stored.path, *build_record_paths(generation)))
            # A damaged manifest stays and names no files.
            with suppress(InvalidGeneration, NoSuchGeneration, DamagedFile):
                needed |= files_of(store, generation)
                kept.append(generation)
    return needed, tuple(kept), tuple(unreadable)
