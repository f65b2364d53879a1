"""Making the segments of staged names: assigns the work, runs the tasks, and joins postings of several groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from broker_core_spark.batch.progress.progress import SparkJob
from broker_core_spark.batch.segments.segment_puts import SegmentPuts, SegmentResult, StoredSegments
from broker_core_spark.batch.segments.segment_task import TaskResult, make_of_assignment
from broker_core_spark.batch.segments.selector_cost import namespace_costs
from broker_core_spark.batch.segments.staged_selectors import StagedSelectors, stage_selectors
from broker_core_spark.batch.segments.task_assignment import (
    EVERYTHING,
    TaskAssignment,
    assign_tasks,
    equal_shares,
)
from broker_core_spark.batch.staging.numbered_work import run_numbered
from broker_core_spark.batch.staging.order_keys import KeyRanges
from broker_core_spark.batch.staging.sorted_runs import SortedRun
from broker_core_spark.batch.staging.staging_area import StagingArea
from broker_core_spark.format import (
    CanonicalQuestion,
    merge_postings,
    read_postings,
    required_selectors,
)
from broker_core_spark.store import Store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["PartsOfSegment", "joined_parts", "make_segments", "merge_parts"]

#: Bytes of postings that a task joins, if the number of tasks is not given.
_MERGED_BYTES: Final = 256 * 1024 * 1024
_LEAST_MERGES: Final = 2


def make_segments(
    spark: SparkSession,
    store: Store,
    staging: StagingArea,
    runs: Sequence[SortedRun],
    questions: Sequence[CanonicalQuestion],
    partitions: int | None = None,
    key_ranges: KeyRanges | None = None,
) -> StoredSegments:
    """Make the segments of the staged names within ``key_ranges``, by default of all, for these questions.

    ``partitions`` is the largest number of tasks of a stage.
    """
    if key_ranges is not None and not key_ranges:
        return StoredSegments()
    required = required_selectors(questions)
    selectors = stage_selectors(store, f"{staging.folder}-selectors", required)
    assignments = assign_tasks(
        runs,
        selectors,
        namespace_costs(required),
        tasks=partitions,
        key_ranges=EVERYTHING if key_ranges is None else key_ranges,
    )
    if not assignments:
        return StoredSegments()
    results: list[TaskResult] = run_numbered(
        spark, staging, assignments, make_of_assignment, _job(assignments, len(questions))
    )
    whole = [
        segment for result in results if assignments[result.number].groups == 1 for segment in result.segments
    ]
    whole += _merge(spark, staging, joined_parts(assignments, results), selectors, partitions)
    tallies = tuple(block for result in results for block in result.tallies)
    return StoredSegments(tuple(whole), tallies, tuple(result.seconds for result in results))


def _job(assignments: Sequence[TaskAssignment], questions: int) -> SparkJob:
    first = [
        assignment for assignment in assignments if assignment.group == 0
    ]  # other groups read the same names
    blocks = {
        (path, block.start): block.stop - block.start
        for assignment in first
        for path, blocks in assignment.blocks.items()
        for block in blocks
    }
    amounts = {
        "segments": sum(len(assignment.segments) for assignment in first),
        "names": sum(part.rows for assignment in first for part in assignment.segments),
        "questions": questions,
    }
    return SparkJob("make segments", amounts, sum(blocks.values()))


@dataclass(frozen=True, slots=True)
class PartsOfSegment:
    """A segment whose names are stored, and the (path, first byte, last byte, CRC-32) of each part of its postings."""

    segment: SegmentResult
    parts: tuple[tuple[str, int, int, int], ...]

    @property
    def size(self) -> int:
        """Bytes of all parts."""
        return sum(stop - start for _, start, stop, _ in self.parts)


def joined_parts(
    assignments: Sequence[TaskAssignment], results: Sequence[TaskResult]
) -> list[PartsOfSegment]:
    """The segments whose postings are in parts, in order."""
    groups: dict[bytes, list[TaskResult]] = {}
    for result in results:
        assignment = assignments[result.number]
        if assignment.groups > 1:
            groups.setdefault(assignment.segments[0].low, []).append(result)
    parts: list[PartsOfSegment] = []
    for low in sorted(groups):
        same = sorted(groups[low], key=lambda result: assignments[result.number].group)
        for position, segment in enumerate(same[0].segments):
            parts.append(
                PartsOfSegment(segment, tuple((result.part, *result.spans[position]) for result in same))
            )
    return parts


def _merge(
    spark: SparkSession,
    staging: StagingArea,
    parts: Sequence[PartsOfSegment],
    selectors: StagedSelectors,
    partitions: int | None,
) -> list[SegmentResult]:
    if not parts:
        return []
    size = sum(part.size for part in parts)
    tasks = partitions or max(_LEAST_MERGES, -(-size // _MERGED_BYTES))
    work = []
    for share in equal_shares(parts, [part.size for part in parts], tasks):
        places = {run[:2] for one in share for run in one.segment.entry.runs}
        work.append((share, selectors.of(sorted(places))))
    job = SparkJob("join postings", {"segments": len(parts)}, size)
    found = run_numbered(spark, staging, work, merge_parts, job)
    return [segment for merged in found for segment in merged]


def merge_parts(
    _staging: StagingArea, store: Store, _number: int, work: tuple[Sequence[PartsOfSegment], StagedSelectors]
) -> list[SegmentResult]:
    """Join the postings of some segments: the work of a numbered task."""
    segments, selectors = work
    keys = selectors.keys(store)
    puts = SegmentPuts(store)
    for one in segments:
        made = one.segment
        parts = [
            postings
            for path, *span in one.parts
            for block in store.get_blocks(path, [(span[0], span[1], span[2])])
            for postings in read_postings(pa.py_buffer(block), path)
        ]
        written = merge_postings(made.entry.runs, parts, keys)
        puts.add(replace(made, entry=replace(made.entry, postings=written.entry)), [written])
    return list(puts.finish())
