"""The rows of the matches of a generation, a row for each topic of each question, as a DataFrame that tasks make."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from broker_core.quantities import counted
from broker_core_spark.batch.build_errors import BatchError
from broker_core_spark.batch.matches.match_rows import asked_columns, match_batches
from broker_core_spark.batch.progress.described_job import described_job
from broker_core_spark.batch.progress.progress import SparkJob
from broker_core_spark.batch.segments.task_assignment import equal_shares
from broker_core_spark.batch.source_address import is_table_name
from broker_core_spark.batch.spark.run_on_partitions import numbered_partitions
from broker_core_spark.batch.written_table import write_table
from broker_core_spark.format import Manifest, Segment, SegmentEntry
from broker_core_spark.store import fetch_verified, open_store, read_manifest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["MatchesTask", "matches_address", "matches_frame", "write_matches"]

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


def matches_frame(
    spark: SparkSession,
    store: str,
    options: Mapping[str, str],
    manifest: Manifest,
    published: datetime,
    *,
    matches: int,
    tasks: int | None = None,
) -> DataFrame:
    """The rows of a generation in a store with these options, ``matches`` in all, made when the frame is evaluated.

    At most ``tasks`` tasks make them, by default as many as the rows need.
    """
    most = tasks or max(_LEAST_TASKS, matches // _TASK_ROWS)
    work = [float(entry.size + _POSTINGS_WEIGHT * entry.postings.size) for entry in manifest.segments]
    shares = equal_shares(range(len(work)), work, most) or [[]]
    task = MatchesTask(store, options, manifest.id, published, shares)
    return numbered_partitions(spark, len(shares)).mapInArrow(task, _DDL)


@dataclass(frozen=True, slots=True)
class MatchesTask:
    """The rows of the matches of a generation, by share: the numbers of some of its segments."""

    store: str
    options: Mapping[str, str]
    generation: str
    published: datetime
    shares: Sequence[Sequence[int]]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of the shares whose numbers are in the first column, which Spark writes itself."""
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from self.rows(self.shares[number])

    def rows(self, segments: Sequence[int]) -> Iterator[pa.RecordBatch]:
        """The rows of these segments.

        Raises :exc:`~broker_core_spark.errors.InvalidGeneration` and :exc:`~broker_core_spark.errors.StoreFailed` for
        files of the generation that are damaged or cannot be read.
        """
        store = open_store(self.store, self.options)
        manifest = read_manifest(store, self.generation)
        entries = [manifest.segments[number] for number in segments]
        questions = fetch_verified(store, manifest.questions, None)
        namespaces = {namespace for entry in entries for namespace, _, _ in entry.runs}
        asked = asked_columns(bytes(questions).splitlines(), namespaces)
        for entry in entries:
            names, postings = (fetch_verified(store, file, None) for file in (entry, entry.postings))
            for run in Segment.open(names, entry.name, postings, entry.postings.name).runs():
                yield from match_batches(run, asked, self.generation, self.published)


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
