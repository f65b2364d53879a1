"""Running Python functions on the partitions of a frame, with small results and readable errors.

Only the DataFrame API (``mapInArrow``) is used, so it runs locally, on a cluster and through Spark Connect.
"""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from broker_core_spark.batch.build_errors import InvalidCatalogue, TaskFailed
from broker_core_spark.batch.progress.described_job import described_job
from broker_core_spark.batch.progress.progress import SparkJob
from broker_core_spark.batch.spark.spark_errors import spark_errors, spark_message
from broker_core_spark.errors import InvalidGeneration

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["numbered_partitions", "run_on_partitions"]

_RESULT: Final = pa.schema([("result", pa.binary())])
_DDL: Final = "result binary"
#: Errors of what a task reads: another try would not help.
_LASTING: Final = (InvalidCatalogue, InvalidGeneration)
_ERROR_LINE: Final = re.compile(r"^\s*(?P<line>(?P<kind>[A-Za-z][\w.]*): .*)", re.MULTILINE)
#: The advice if a worker lacks a module: executors have their own Python.
_NO_PACKAGE: Final = (
    ". Executors need broker-core-spark in the Python that PYSPARK_PYTHON names: an image, or --archives and "
    "PYSPARK_PYTHON in it"
)
PartitionWork = Callable[[Iterator[pa.RecordBatch]], Iterator[Any]]


def _pickled(work: PartitionWork, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The results of ``work``, pickled as in Spark's own API for Python.

    An error that another try would meet again is a result, too.
    """
    try:
        for result in work(batches):
            yield pa.record_batch([[pickle.dumps(result)]], schema=_RESULT)
    except _LASTING as error:
        yield pa.record_batch([[pickle.dumps(error)]], schema=_RESULT)


def numbered_partitions(spark: SparkSession, tasks: int) -> DataFrame:
    """A frame with the column ``id`` of numbers from 0 on, one a partition."""
    return spark.range(0, tasks, 1, tasks)


def run_on_partitions(frame: DataFrame, work: PartitionWork, job: SparkJob) -> list[Any]:
    """The results of ``work`` on all partitions, unordered. Failed attempts do not count.

    ``job`` says in Spark's UI, in its event log and to the build's progress what the tasks do.

    Raises the :exc:`InvalidCatalogue` or :exc:`InvalidGeneration` of a task, and :exc:`TaskFailed` if Spark gives up.
    """
    try:
        with described_job(frame.sparkSession, job):
            rows = frame.mapInArrow(partial(_pickled, work), _DDL).collect()
    except spark_errors() as error:
        raise TaskFailed(_reason(error)) from error
    results = [pickle.loads(row["result"]) for row in rows]  # noqa: S301 - as Spark itself does
    errors = sorted((result for result in results if isinstance(result, _LASTING)), key=str)
    if errors:
        raise errors[0]
    return results


def _reason(error: Exception) -> str:
    """The last line of a worker's traceback, else the first line of Spark's message."""
    _, _, trace = str(error).partition("Traceback (most recent call last)")
    found = _ERROR_LINE.search(trace)
    if found is None:
        return f"Spark failed: {spark_message(error)}"
    advice = _NO_PACKAGE if found["kind"] == "ModuleNotFoundError" else ""
    return f"A task of Spark failed: {found['line'][:2000]}{advice}"
