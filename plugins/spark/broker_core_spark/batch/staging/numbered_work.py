"""Running a function on numbered pieces of work in tasks of Spark, each of which reads its own piece alone."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow as pa

from broker_core_spark.batch.progress.progress import SparkJob
from broker_core_spark.batch.spark.run_on_partitions import numbered_partitions, run_on_partitions
from broker_core_spark.batch.staging.staging_area import StagingArea
from broker_core_spark.store import Store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["run_numbered"]

#: Work of less seconds is done sooner in the driver than a job of Spark begins, and by so many threads.
_LITTLE_SECONDS: Final = 2.0
_THREADS: Final = 2
#: A module's function, or a method, of the number and the work of a task: it is pickled by reference.
_Done: TypeAlias = Callable[[StagingArea, Store, int, Any], Any]


@dataclass(frozen=True, slots=True)
class _NumberedTask:
    """A function of a Spark job: the results of ``done`` by number. Each ``work`` is pickled by itself."""

    staging: StagingArea
    work: tuple[bytes, ...]
    done: _Done

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[Any]:
        for batch in batches:
            yield from map(self.result, batch.column(0).to_pylist())

    def result(self, number: int) -> Any:
        work = pickle.loads(self.work[number])  # noqa: S301 - the driver's, carried as Spark carries functions
        return self.done(self.staging, self.staging.open(), number, work)


def run_numbered(
    spark: SparkSession,
    staging: StagingArea,
    work: Sequence[Any],
    done: _Done,
    job: SparkJob,
    *,
    seconds: float = math.inf,
) -> list[Any]:
    """The results of ``done`` for each work, unordered.

    ``seconds`` is the time of a core for the whole work: little work needs no job of Spark.
    """
    task = _NumberedTask(staging, tuple(map(pickle.dumps, work)), done)
    if seconds > _LITTLE_SECONDS:
        return run_on_partitions(numbered_partitions(spark, len(work)), task, job)
    with ThreadPoolExecutor(_THREADS, "little-work") as threads:
        return list(threads.map(task.result, range(len(work))))
