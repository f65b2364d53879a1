"""Results of partitions are collected once. Invalid input is its own error, other failures have a reason."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from broker_core_spark.batch.build_errors import InvalidCatalogue, TaskFailed
from broker_core_spark.batch.progress.progress import SparkJob
from broker_core_spark.batch.spark.run_on_partitions import _reason, numbered_partitions, run_on_partitions
from broker_core_spark.errors import InvalidGeneration

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JOB = SparkJob("count")


def numbers(batches: Iterator[pa.RecordBatch]) -> Iterator[bytes]:
    for batch in batches:
        for number in batch.column(0).to_pylist():
            yield str(number).encode()


def refusing(batches: Iterator[pa.RecordBatch]) -> Iterator[bytes]:
    for result in numbers(batches):
        if result == b"3":
            raise InvalidCatalogue("topic 3 is none")
        yield result


def meeting_damage(batches: Iterator[pa.RecordBatch]) -> Iterator[bytes]:
    for result in numbers(batches):
        raise InvalidGeneration("segments/x", f"{result!r} is damaged")
    yield b""


def failing(_batches: Iterator[pa.RecordBatch]) -> Iterator[bytes]:
    raise OSError("the disk is full")
    yield b""


def test_each_task_has_its_own_number(spark: SparkSession) -> None:
    assert sorted(map(int, run_on_partitions(numbered_partitions(spark, 7), numbers, JOB))) == list(range(7))


def test_errors(spark: SparkSession) -> None:
    with pytest.raises(InvalidCatalogue, match="topic 3 is none"):
        run_on_partitions(numbered_partitions(spark, 5), refusing, JOB)
    with pytest.raises(InvalidGeneration, match="segments/x: b'0' is damaged") as damaged:
        run_on_partitions(numbered_partitions(spark, 2), meeting_damage, JOB)
    assert damaged.value.file == "segments/x"
    with pytest.raises(TaskFailed, match="the disk is full"):
        run_on_partitions(numbered_partitions(spark, 2), failing, JOB)


def test_a_reason_is_one_line() -> None:
    said = (
        "Job aborted:\nTraceback (most recent call last):\n  File x, line 1\n    raise\n"
        "    ^^^^\npkg.errors.StoreFailed: cannot write\n\n\tat java"
    )
    assert _reason(RuntimeError(said)) == "A task of Spark failed: pkg.errors.StoreFailed: cannot write"
    said = "Traceback (most recent call last):\n  File x\nModuleNotFoundError: No module named 'broker_core_spark'\n"
    assert "'broker_core_spark'. Executors need broker-core-spark in the Python" in _reason(
        RuntimeError(said)
    )
    assert _reason(RuntimeError("no space\nmore")) == "Spark failed: no space"
    assert _reason(RuntimeError("")) == "Spark failed: RuntimeError"
