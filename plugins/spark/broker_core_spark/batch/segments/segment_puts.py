"""Putting the files of a task's segments into the store, many at a time: a sync or a request takes milliseconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

from broker_core_spark.batch.segments.tallies import TallyBlock
from broker_core_spark.format import (
    FramedFile,
    SegmentEntry,
    SegmentPatch,
    patch_limit,
    patch_name,
)
from broker_core_spark.store import Store, put_all_verified

__all__ = ["SegmentPuts", "SegmentResult", "StoredSegments"]

#: Files and bytes that wait, in memory.
_MOST_FILES: Final = 256
_MOST_BYTES: Final = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class SegmentResult:
    """A segment in the store: its entry in the manifest.

    ``new`` is false if the store had both files. ``duplicates`` counts names that were given more than once. ``digest``
    is the digest of the keys of its whole stretch, if they were read
    (:func:`~broker_core_spark.batch.staging.sorted_runs.names_digest`).
    """

    entry: SegmentEntry
    new: bool = False
    duplicates: int = 0
    digest: str = ""


@dataclass(frozen=True, slots=True)
class StoredSegments:
    """Segments in the store, unordered, and the places of their selectors' tallies.

    ``task_seconds`` are the seconds of a processor of each task that made some. ``anew`` are the stretches that could
    not be carried over and are to be made anew.
    """

    segments: tuple[SegmentResult, ...] = ()
    tallies: tuple[TallyBlock, ...] = ()
    task_seconds: tuple[float, ...] = ()
    anew: tuple[int, ...] = ()


class SegmentPuts:
    """Takes written files segment by segment."""

    def __init__(self, store: Store) -> None:
        #: The segments whose files are in the store, in order.
        self.stored: list[SegmentResult] = []
        self._store = store
        self._waiting: list[tuple[SegmentResult, Sequence[FramedFile]]] = []
        self._patches: dict[str, bytes] = {}

    def add(
        self, result: SegmentResult, files: Sequence[FramedFile], patch: SegmentPatch | None = None
    ) -> None:
        """Add a segment, its files to store, and a patch that makes them.

        A segment is new if one of its files is. A patch that is no small part of the files is left out.
        """
        self._waiting.append((result, files))
        if patch is not None and len(data := patch.data) <= patch_limit(result.entry):
            self._patches[patch_name(result.entry.files)] = data
        sizes = [written.size for written in self._files()]
        if len(sizes) >= _MOST_FILES or sum(sizes) >= _MOST_BYTES:
            self.finish()

    def finish(self) -> tuple[SegmentResult, ...]:
        """Store all that is left. Gives all segments so far."""
        new = iter(put_all_verified(self._store, [(written, written.data) for written in self._files()]))
        self.stored += [
            replace(result, new=True in [result.new, *islice(new, len(own))]) for result, own in self._waiting
        ]
        # A segment that the store has may have been made of another one.
        self._store.put_files(list(self._patches.items()), replace=True)
        self._waiting.clear()
        self._patches.clear()
        return tuple(self.stored)

    def _files(self) -> list[FramedFile]:
        """The files that wait."""
        return [written for _, own in self._waiting for written in own]
