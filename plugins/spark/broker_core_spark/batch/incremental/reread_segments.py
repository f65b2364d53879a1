"""Reading back the segments that a new generation keeps of the last one: whole, and as a full build would make them.

A segment that was damaged in its store is made anew. One that is what its name says, and still not what the manifest
and the format say, is the work of a faulty writer: then nothing of that generation is built upon.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from broker_core_spark.batch.segments.segment_task import SegmentResult
from broker_core_spark.errors import DamagedFile, InvalidGeneration
from broker_core_spark.format.canonical_question import CanonicalQuestion
from broker_core_spark.format.manifest import Manifest, SegmentEntry
from broker_core_spark.format.segment_checks import SegmentChecks, last_place
from broker_core_spark.format.segment_reader import Segment
from broker_core_spark.store import Store
from broker_core_spark.store.verified_files import fetch_verified

__all__ = ["reread_segments"]

#: Segments that are read at once; each takes some times its size in memory.
_READERS: Final = 2


def reread_segments(
    store: Store, manifest: Manifest, questions: Iterable[CanonicalQuestion], kept: Iterable[SegmentEntry]
) -> tuple[list[SegmentResult], set[str]]:
    """(what each of these segments of a generation says of its selectors, the names of those that are damaged).

    ``questions`` are those of the generation. Raises :exc:`InvalidGeneration` for a segment whose checksum is right,
    and whose names, order, cuts or selectors are not what they must be.
    """
    checks = SegmentChecks(manifest, questions)
    wanted = set(kept)
    chosen = [(number, entry) for number, entry in enumerate(manifest.segments) if entry in wanted]

    def read(numbered: tuple[int, SegmentEntry]) -> SegmentResult | None:
        number, entry = numbered
        try:
            data = fetch_verified(store, entry, None)
        except (InvalidGeneration, DamagedFile):
            return None
        runs = list(checks.runs(number, Segment.open(data, entry.name), every_boundary=True))
        checks.check_end(number, last_place(runs[-1]))
        # Copies, so that the file goes.
        return SegmentResult(entry, tuple(run.entries.copy() for run in runs), new=False, duplicates=0)

    with ThreadPoolExecutor(_READERS) as threads:
        results = list(threads.map(read, chosen))
    damaged = {entry.name for (_, entry), found in zip(chosen, results, strict=True) if found is None}
    return [found for found in results if found is not None], damaged
