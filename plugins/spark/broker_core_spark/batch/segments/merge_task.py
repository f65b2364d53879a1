"""The task that joins the parts of postings which tasks of several groups of selectors staged."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from broker_core_spark.batch.segments.segment_puts import SegmentPuts
from broker_core_spark.batch.segments.segment_result import SegmentResult
from broker_core_spark.batch.segments.staged_selectors import StagedSelectors
from broker_core_spark.batch.staging.staging_area import StagingArea
from broker_core_spark.format.manifest import FileEntry
from broker_core_spark.format.postings_file import read_postings
from broker_core_spark.format.postings_merge import merge_postings
from broker_core_spark.format.selector_keys import SelectorKeys
from broker_core_spark.store import Store

__all__ = ["PartsOfSegment", "merge_parts"]


@dataclass(frozen=True, slots=True)
class PartsOfSegment:
    """A segment whose names are stored, and the (path, first byte, last byte) of each part of its postings."""

    segment: SegmentResult
    parts: tuple[tuple[str, int, int], ...]

    @property
    def size(self) -> int:
        """Bytes of all parts."""
        return sum(stop - start for _, start, stop in self.parts)

    @staticmethod
    def to_bytes(segments: Sequence[PartsOfSegment], selectors: StagedSelectors) -> bytes:
        """The work of a task, as the store carries it."""
        places = {(run[0], run[1]) for one in segments for run in one.segment.entry.runs}
        return json.dumps(
            {
                "segments": [[one.segment.record(), one.parts] for one in segments],
                "selectors": selectors.of(sorted(places)).record(),
            }
        ).encode()


def merge_parts(_staging: StagingArea, store: Store, _number: int, data: bytes) -> list[SegmentResult]:
    """Do the work of one numbered task: the segments whose postings are joined."""
    record = json.loads(data)
    selectors = StagedSelectors.of_record(record["selectors"])
    asked: dict[tuple[str, str], SelectorKeys] = {}
    merged: list[SegmentResult] = []
    with SegmentPuts(store) as puts:
        for segment, parts in record["segments"]:
            made = SegmentResult.of(segment)
            for namespace, domain, _ in made.entry.runs:
                if (namespace, domain) not in asked:
                    asked[namespace, domain] = selectors.keys(store, (namespace, domain))
            files = [
                read_postings(pa.py_buffer(store.get_range(path, start, stop)), path)
                for path, start, stop in parts
            ]
            written = merge_postings(made.entry.runs, files, asked)
            entry = replace(made.entry, postings=FileEntry(written.name, written.size))
            merged += puts.add(replace(made, entry=entry), [written])
        return merged + puts.finish()
