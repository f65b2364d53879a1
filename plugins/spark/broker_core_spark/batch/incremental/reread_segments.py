"""Reading the segments that an incremental build keeps, whole.

A segment that was damaged in the store is made anew. If a segment has the right checksum and still contradicts the
manifest or the format, its writer was faulty, and nothing of that generation is kept.
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

#: Segments read at once. Each takes a few times its size in memory.
_READERS: Final = 2


def reread_segments(
    store: Store, manifest: Manifest, questions: Iterable[CanonicalQuestion], kept: Iterable[SegmentEntry]
) -> tuple[list[SegmentResult], set[str]]:
    """(the postings of the segments in ``kept``, the names of the damaged ones).

    ``questions`` are those of the generation. Raises :exc:`InvalidGeneration` for a segment with the right checksum
    and wrong names, order, boundaries or selectors.
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
        # Copies let the mapped file go.
        return SegmentResult(entry, tuple(run.entries.copy() for run in runs), new=False, duplicates=0)

    with ThreadPoolExecutor(_READERS) as threads:
        results = list(threads.map(read, chosen))
    damaged = {entry.name for (_, entry), found in zip(chosen, results, strict=True) if found is None}
    return [found for found in results if found is not None], damaged
