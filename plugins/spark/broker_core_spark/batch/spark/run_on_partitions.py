"""Running Python functions on the partitions of a frame, with small results and readable errors.

Only the DataFrame API (``mapInArrow``) is used, so it runs locally, on a cluster and through Spark Connect.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from broker_core_spark.batch.build_errors import InvalidCatalogue, TaskFailed
from broker_core_spark.batch.progress.described_job import described_job
from broker_core_spark.batch.progress.progress import SparkJob

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["is_spark_error", "numbered_partitions", "run_on_partitions", "spark_message"]

_RESULT: Final = pa.schema([("result", pa.binary()), ("refused", pa.string())])
_DDL: Final = "result binary, refused string"
PartitionWork = Callable[[Iterator[pa.RecordBatch]], Iterator[Any]]


@dataclass(frozen=True, slots=True)
class _Task:
    """``work`` as Spark calls it. Results are pickled, as in Spark's own API for Python.

    Invalid input is a result, because another try would not help.
    """

    work: PartitionWork

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            for result in self.work(batches):
                yield pa.record_batch([[pickle.dumps(result)], [None]], schema=_RESULT)
        except InvalidCatalogue as error:
            yield pa.record_batch([[None], [str(error)]], schema=_RESULT)


def numbered_partitions(spark: SparkSession, tasks: int) -> DataFrame:
    """A frame with the column ``id`` of numbers from 0 on, one a partition."""
    return spark.range(0, tasks, 1, tasks)


def run_on_partitions(frame: DataFrame, work: PartitionWork, job: SparkJob) -> list[Any]:
    """The results of ``work`` on all partitions, unordered. Failed attempts do not count.

    ``job`` says in Spark's UI, in its event log and to the build's progress what the tasks do.

    Raises the :exc:`InvalidCatalogue` of a task, and :exc:`TaskFailed` if Spark gives up.
    """
    try:
        with described_job(frame.sparkSession, job):
            rows = frame.mapInArrow(_Task(work), _DDL).collect()
    except Exception as error:
        if not is_spark_error(error):
            raise
        raise TaskFailed(_reason(error)) from error
    refused = sorted(row["refused"] for row in rows if row["refused"] is not None)
    if refused:
        raise InvalidCatalogue(refused[0])
    return [pickle.loads(row["result"]) for row in rows]  # noqa: S301 - as Spark itself does


def is_spark_error(error: BaseException) -> bool:
    """Whether an error is Spark's own or that of its bridge to Java."""
    from pyspark.errors import PySparkException

    return isinstance(error, PySparkException) or type(error).__module__.startswith("py4j.")


def spark_message(error: BaseException) -> str:
    """The line of a Spark error with the reason. In an error of Java it follows the bridge's own text."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if len(lines) > 1 and lines[0].startswith("An error occurred while calling"):
        return lines[1].removeprefix(": ")[:1000]
    return lines[0][:1000] if lines else type(error).__name__


def _advice(kind: str) -> str:
    """Advice about an error of this kind in a worker: executors have their own Python."""
    if kind != "ModuleNotFoundError":
        return ""
    return (
        ". Executors need broker-core-spark in the Python that PYSPARK_PYTHON names: an image, or --archives and "
        "PYSPARK_PYTHON in it"
    )


def _reason(error: Exception) -> str:
    """The last line of a worker's traceback, else the first line of Spark's message."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    for at, line in enumerate(lines):
        if line.startswith("Traceback (most recent call last)"):
            for later in lines[at + 1 :]:
                if not later.startswith(("File ", "^", "~")) and ": " in later and later[:1].isalpha():
                    kind = later.partition(":")[0]
                    if kind.replace(".", "").replace("_", "").isalnum():
                        return f"A task of Spark failed: {later[:2000]}{_advice(kind)}"
    return f"Spark failed: {spark_message(error)}"
