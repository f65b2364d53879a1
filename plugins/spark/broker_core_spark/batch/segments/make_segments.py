"""Making the segments of staged names: assigns the work, and runs the tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from broker_core_spark.batch.progress.progress import SparkJob
from broker_core_spark.batch.segments.segment_puts import MadeSegments
from broker_core_spark.batch.segments.segment_task import make_of_assignment
from broker_core_spark.batch.segments.selector_cost import namespace_costs
from broker_core_spark.batch.segments.staged_selectors import stage_selectors
from broker_core_spark.batch.segments.task_assignment import EVERYTHING, TaskAssignment, assign_tasks
from broker_core_spark.batch.staging.numbered_work import run_numbered
from broker_core_spark.batch.staging.order_keys import KeyRanges
from broker_core_spark.batch.staging.sorted_runs import SortedRun
from broker_core_spark.batch.staging.staging_area import StagingArea
from broker_core_spark.format import CanonicalQuestion, required_selectors
from broker_core_spark.store import Store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["make_segments"]


def make_segments(
    spark: SparkSession,
    store: Store,
    staging: StagingArea,
    runs: Sequence[SortedRun],
    questions: Sequence[CanonicalQuestion],
    partitions: int | None = None,
    key_ranges: KeyRanges | None = None,
) -> MadeSegments:
    """Make the segments of the staged names within ``key_ranges``, by default of all, for these questions.

    ``partitions`` is the largest number of tasks.
    """
    if key_ranges is not None and not key_ranges:
        return MadeSegments()
    required = required_selectors(questions)
    assignments = assign_tasks(
        runs,
        stage_selectors(store, f"{staging.folder}-selectors", required),
        namespace_costs(required),
        tasks=partitions,
        key_ranges=EVERYTHING if key_ranges is None else key_ranges,
    )
    if not assignments:
        return MadeSegments()
    job = _job(assignments, len(questions))
    return MadeSegments.of(run_numbered(spark, staging, assignments, make_of_assignment, job))


def _job(assignments: Sequence[TaskAssignment], questions: int) -> SparkJob:
    blocks = {
        (path, block.start): block.stop - block.start
        for assignment in assignments
        for path, blocks in assignment.blocks.items()
        for block in blocks
    }
    amounts = {
        "segments": sum(len(assignment.segments) for assignment in assignments),
        "names": sum(part.rows for assignment in assignments for part in assignment.segments),
        "questions": questions,
    }
    return SparkJob("make segments", amounts, sum(blocks.values()))
