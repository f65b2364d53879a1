"""The rows of the matches of a generation, a row for each topic of each question, as a DataFrame that tasks make."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from broker_core.quantities import counted
from broker_core_spark.batch.build_errors import BatchError
from broker_core_spark.batch.matches.matches_task import MatchesOf, MatchesOfShares
from broker_core_spark.batch.progress.described_job import described_job
from broker_core_spark.batch.progress.progress import SparkJob
from broker_core_spark.batch.segments.task_assignment import equal_shares
from broker_core_spark.batch.source_address import is_table_name
from broker_core_spark.batch.spark.run_on_partitions import numbered_partitions
from broker_core_spark.batch.written_table import write_table
from broker_core_spark.format import SegmentEntry

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["matches_address", "matches_frame", "most_tasks", "write_matches"]

#: Rows of a task, if the number of tasks is not given.
_TASK_ROWS: Final = 4_000_000
_LEAST_TASKS: Final = 4
#: A byte of postings has more rows than one of names.
_POSTINGS_WEIGHT: Final = 8
_DDL: Final = (
    "namespace string, mode string, pattern string, properties map<string,string>, topic string, "
    "generation string, published timestamp"
)


def matches_address(address: str, number: int) -> str:
    """The address of the rows of the generation with this number: a folder of it, or the table itself."""
    return address if is_table_name(address) else f"{address.rstrip('/')}/number={number}"


def most_tasks(matches: int) -> int:
    """The number of tasks for so many rows, if none is given."""
    return max(_LEAST_TASKS, matches // _TASK_ROWS)


def matches_frame(
    spark: SparkSession, matches: MatchesOf, segments: Sequence[SegmentEntry], tasks: int
) -> DataFrame:
    """The rows, made by at most ``tasks`` tasks when the frame is evaluated."""
    shares = _shares(segments, tasks)
    work = MatchesOfShares(matches, tuple(shares))
    return numbered_partitions(spark, len(shares)).mapInArrow(work, _DDL)


def write_matches(frame: DataFrame, place: str, segments: Sequence[SegmentEntry], matches: int) -> None:
    """Write the rows of a frame at :func:`matches_address`, and compare the number in a folder with ``matches``.

    Raises :exc:`BatchError`.
    """
    spark = frame.sparkSession
    amounts = {"segments": len(segments), "matches": matches}
    job = SparkJob("export matches", amounts, sum(entry.size + entry.postings.size for entry in segments))
    with described_job(spark, job):
        write_table(frame, place)
    if not is_table_name(place) and (rows := spark.read.parquet(place).count()) != matches:
        raise BatchError(
            f"{place}: {counted(rows, 'row', spec=',')}, and the generation has "
            f"{counted(matches, 'match', 'matches', spec=',')}: is it a place that the driver and "
            "all tasks share?"
        )


def _shares(segments: Sequence[SegmentEntry], tasks: int) -> list[tuple[int, int]]:
    """Neighbouring segments of about the same work. At least one share, which may have none."""
    work = [float(entry.size + _POSTINGS_WEIGHT * entry.postings.size) for entry in segments]
    shares = equal_shares(range(len(segments)), work, tasks)
    return [(share[0], share[-1] + 1) for share in shares] or [(0, 0)]
