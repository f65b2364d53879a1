"""Patterns that brokers do not evaluate. Many are compiled in tasks: each takes a quarter of a millisecond."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from broker_core_spark.batch.progress.progress import SparkJob
from broker_core_spark.batch.questions.parse_question_row import refusal_reason
from broker_core_spark.batch.spark.run_on_partitions import run_on_partitions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["refused_patterns"]

#: Patterns from which on tasks are worth their start.
_MANY: Final = 20_000


def refused_patterns(
    patterns: Sequence[str], max_length: int | None, spark: SparkSession | None = None, many: int = _MANY
) -> dict[str, str]:
    """The reason of each pattern that brokers refuse. With ``spark``, tasks look at ``many`` or more."""
    if spark is None or len(patterns) < many:
        return dict(_refused(patterns, max_length))
    frame = spark.createDataFrame(pa.table({"pattern": patterns}))
    job = SparkJob("check the patterns", {"patterns": len(patterns)})
    found = run_on_partitions(frame, partial(_refused_of_batches, max_length), job)
    return {pattern: reason for result in found for pattern, reason in result}


def _refused_of_batches(
    max_length: int | None, batches: Iterator[pa.RecordBatch]
) -> Iterator[list[tuple[str, str]]]:
    """The work of a task, pickled by reference into the executors."""
    for batch in batches:
        yield list(_refused(batch.column(0).to_pylist(), max_length))


def _refused(patterns: Iterable[str], max_length: int | None) -> Iterator[tuple[str, str]]:
    for pattern in patterns:
        reason = refusal_reason(pattern, max_length)
        if reason is not None:
            yield pattern, reason
