"""Reading the segments that an incremental build keeps, whole.

A segment that was damaged in the store is made anew. If a segment has the right checksum and still contradicts the
manifest or the format, its writer was faulty, and nothing of that generation is kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import numpy as np

from broker_core_spark.batch.incremental.segment_reuse import first_key
from broker_core_spark.batch.segments.segment_result import SegmentResult
from broker_core_spark.batch.segments.tallies import TallyBlock, TallyWriter
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
_Array = np.ndarray[Any, Any]


def reread_segments(
    store: Store,
    manifest: Manifest,
    questions: Iterable[CanonicalQuestion],
    kept: Iterable[SegmentEntry],
    folder: str,
) -> tuple[list[SegmentResult], dict[str, list[TallyBlock]], set[str]]:
    """(the segments in ``kept``, their tallies by the names of segments, the names of the damaged ones).

    ``questions`` are those of the generation. ``folder`` is the prefix of the file of tallies. Raises
    :exc:`InvalidGeneration` for a segment with the right checksum and wrong names, order, boundaries or selectors.
    """
    checks = SegmentChecks(manifest, questions)
    wanted = set(kept)
    chosen = [(number, entry) for number, entry in enumerate(manifest.segments) if entry in wanted]

    def read(numbered: tuple[int, SegmentEntry]) -> list[tuple[str, str, _Array]] | None:
        number, entry = numbered
        try:
            data, postings = (fetch_verified(store, file, None) for file in (entry, entry.postings))
        except (InvalidGeneration, DamagedFile):
            return None
        segment = Segment.open(data, entry.name, postings, entry.postings.name)
        runs = list(checks.runs(number, segment, every_boundary=True))
        checks.check_end(number, last_place(runs[-1]))
        # Copies let the mapped file go.
        return [(run.namespace, run.domain, run.entries.copy()) for run in runs]

    results: list[SegmentResult] = []
    orders: dict[bytes, str] = {}
    damaged: set[str] = set()
    tallies = TallyWriter()
    with ThreadPoolExecutor(_READERS) as threads:
        for (_, entry), runs in zip(chosen, threads.map(read, chosen), strict=True):
            if runs is None:
                damaged.add(entry.name)
                continue
            results.append(SegmentResult(entry))
            order = first_key(entry)
            orders[order] = entry.name
            tallies.begin(order)
            for namespace, domain, entries in runs:
                tallies.add(namespace, domain, entries)
    blocks: dict[str, list[TallyBlock]] = {}
    for block in tallies.finish(store, folder):
        blocks.setdefault(orders[block.order], []).append(block)
    return results, blocks, damaged
