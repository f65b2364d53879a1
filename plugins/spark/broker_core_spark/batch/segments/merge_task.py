"""The task that joins the parts of postings which tasks of several groups of selectors staged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from broker_core_spark.batch.segments.segment_puts import SegmentPuts, SegmentResult
from broker_core_spark.batch.segments.staged_selectors import StagedSelectors
from broker_core_spark.batch.staging.staging_area import StagingArea
from broker_core_spark.format import FileEntry, merge_postings, read_postings
from broker_core_spark.store import Store

__all__ = ["PartsOfSegment", "merge_parts", "selectors_of"]


@dataclass(frozen=True, slots=True)
class PartsOfSegment:
    """A segment whose names are stored, and the (path, first byte, last byte) of each part of its postings."""

    segment: SegmentResult
    parts: tuple[tuple[str, int, int], ...]

    @property
    def size(self) -> int:
        """Bytes of all parts."""
        return sum(stop - start for _, start, stop in self.parts)


def selectors_of(segments: Sequence[PartsOfSegment], selectors: StagedSelectors) -> StagedSelectors:
    """The selectors of the runs of these segments."""
    return selectors.of(sorted({run[:2] for one in segments for run in one.segment.entry.runs}))


def merge_parts(
    _staging: StagingArea, store: Store, _number: int, work: tuple[Sequence[PartsOfSegment], StagedSelectors]
) -> list[SegmentResult]:
    """Do the work of one numbered task: the segments whose postings are joined."""
    segments, selectors = work
    asked = {place: selectors.keys(store, place) for place in selectors.places}
    merged: list[SegmentResult] = []
    with SegmentPuts(store) as puts:
        for one in segments:
            made = one.segment
            files = [
                read_postings(pa.py_buffer(store.get_range(path, start, stop)), path)
                for path, start, stop in one.parts
            ]
            written = merge_postings(made.entry.runs, files, asked)
            entry = replace(made.entry, postings=FileEntry(written.name, written.size))
            merged += puts.add(replace(made, entry=entry), [written])
        return merged + puts.finish()
