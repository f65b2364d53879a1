"""The work of numbered tasks, one staged file each: written many at once, and read by its task."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow as pa

from broker_core_spark.batch.build_errors import InvalidCatalogue
from broker_core_spark.batch.progress.progress import SparkJob
from broker_core_spark.batch.spark.run_on_partitions import numbered_partitions, run_on_partitions
from broker_core_spark.batch.staging.staging_area import StagingArea
from broker_core_spark.store import Store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["NumberedTask", "numbered_work", "run_numbered"]

#: Bytes of the largest file.
_MOST_BYTES: Final = 2 * 1024**3
#: Work of less seconds is done sooner in the driver than a job of Spark begins, and by so many threads.
_LITTLE_SECONDS: Final = 2.0
_THREADS: Final = 2
#: The work with the number and the content of a file, a module's function: it is pickled by reference.
_Done: TypeAlias = Callable[[StagingArea, Store, int, bytes], Any]


@dataclass(frozen=True, slots=True)
class NumberedTask:
    """A task that gives the results of ``done`` for the work of each of its numbers, at paths that begin with
    ``prefix``.
    """

    staging: StagingArea
    prefix: str
    done: _Done

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[Any]:
        store = self.staging.open()
        for number, data in numbered_work(store, self.prefix, batches):
            yield self.done(self.staging, store, number, data)


def run_numbered(
    spark: SparkSession,
    staging: StagingArea,
    name: str,
    work: Sequence[bytes],
    done: _Done,
    job: SparkJob,
    *,
    seconds: float = math.inf,
) -> list[Any]:
    """The results of ``done`` for each work, unordered. ``name`` is for the staged files.

    ``seconds`` is the time of a core for the whole work: little work needs no job of Spark.
    """
    task = NumberedTask(staging, f"{staging.folder}-{name}-", done)
    files = [(f"{task.prefix}{number}.json", content) for number, content in enumerate(work)]
    staging.open().put_all_new(files)
    if seconds > _LITTLE_SECONDS:
        return run_on_partitions(numbered_partitions(spark, len(work)), task, job)
    with ThreadPoolExecutor(_THREADS, "little-work") as threads:
        found = threads.map(lambda number: list(task(iter([_batch(number)]))), range(len(work)))
        return [result for results in found for result in results]


def _batch(number: int) -> pa.RecordBatch:
    return pa.record_batch({"id": [number]})


def numbered_work(
    store: Store, prefix: str, batches: Iterator[pa.RecordBatch]
) -> Iterator[tuple[int, bytes]]:
    """The number and the content of ``prefixNUMBER.json`` for each number in the first column of ``batches``.

    Raises :exc:`InvalidCatalogue` for a file that is not there.
    """
    for batch in batches:
        for number in batch.column(0).to_pylist():
            data = store.get(f"{prefix}{number}.json", _MOST_BYTES)
            if data is None:
                raise InvalidCatalogue(
                    f"The work of task {number} is not in {store.uri}: a store is a bucket or a folder that the "
                    "driver and all executors share, and nobody else empties its folder temporary during a build"
                )
            yield number, data
