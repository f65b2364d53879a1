"""The history of builds: Parquet tables that each build appends a row to, and if asked a row for each question.

A table is a folder, and a build adds one file to it. So builds at once do not disturb each other, and Spark, DuckDB or
pandas read the folder as one table.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from broker_core_spark.batch.errors import BatchError
from broker_core_spark.batch.reports.parquet_export import check_export, put_table, totals_table
from broker_core_spark.batch.source_address import is_in_bucket, is_of_spark
from broker_core_spark.errors import StoreFailed
from broker_core_spark.store.store_address import local_path

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from broker_core_spark.batch.build_result import BuildResult

__all__ = ["HISTORY_SCHEMA", "append_history", "check_history", "history_row"]

HISTORY_SCHEMA: Final = pa.schema(
    [
        ("generation", pa.string()),
        ("number", pa.int64()),
        ("published", pa.timestamp("us", "UTC")),
        ("began", pa.timestamp("us", "UTC")),
        ("seconds", pa.float64()),
        ("user", pa.string()),
        ("host", pa.string()),
        ("application", pa.string()),
        ("catalogue", pa.string()),
        ("patterns", pa.string()),
        ("incremental", pa.bool_()),
        ("topics", pa.int64()),
        ("namespaces", pa.int64()),
        ("questions", pa.int64()),
        ("matches", pa.int64()),
        ("refused", pa.int64()),
        ("left_out", pa.int64()),
        ("coverage", pa.float64()),
        ("added", pa.int64()),
        ("removed", pa.int64()),
        ("changed", pa.int64()),
        ("segments_written", pa.int64()),
        ("segments_kept", pa.int64()),
        ("quarantined", pa.int64()),
    ]
)
_BUILDS: Final = "builds"
_QUESTIONS: Final = "questions"


def history_row(result: BuildResult) -> pa.Table:
    """The row of a build."""
    record, builder = result.record(), result.builder
    differences = record["differences"] or {}
    row = {name: record.get(name) for name in HISTORY_SCHEMA.names} | {
        "published": result.published,
        "began": result.began,
        "seconds": result.seconds.get("total"),
        "user": builder.user if builder else None,
        "host": builder.host if builder else None,
        "application": builder.application if builder else None,
        "patterns": result.patterns,
        "incremental": result.incremental,
        "left_out": len(result.left_out),
        **{name: differences.get(name) for name in ("added", "removed", "changed")},
    }
    return pa.Table.from_pylist([row], schema=HISTORY_SCHEMA)


def append_history(
    spark: SparkSession,
    address: str,
    result: BuildResult,
    options: Mapping[str, str] | None = None,
    *,
    questions: bool = False,
) -> None:
    """Append to the tables ``builds`` and, with ``questions``, ``questions`` in the folder ``address``.

    Raises :exc:`BatchError`, which says that the generation is published.
    """
    tables = {_BUILDS: history_row(result)}
    if questions:
        tables[_QUESTIONS] = totals_table(result)
    file = f"{result.number:012}-{result.generation[:12]}.parquet"
    try:
        for name, table in tables.items():
            folder = f"{address.rstrip('/')}/{name}"
            if is_of_spark(address):
                put_table(spark, folder, table, append=True)
            else:
                _make_folder(folder)
                put_table(spark, f"{folder}/{file}", table, options)
    except BatchError as error:
        raise BatchError(f"{error}; the generation is published") from error


def check_history(spark: SparkSession, address: str, options: Mapping[str, str] | None = None) -> None:
    """Raise unless the tables can be written, as far as that shows before a build. Makes their folders."""
    for name in (_BUILDS, _QUESTIONS):
        folder = f"{address.rstrip('/')}/{name}"
        if is_of_spark(address):
            check_export(spark, folder, options)
            continue
        _make_folder(folder)
        check_export(spark, f"{folder}/new.parquet", options)


def _make_folder(folder: str) -> None:
    if is_in_bucket(folder):
        return
    path = local_path(folder) if "://" in folder else Path(folder)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreFailed(f"{folder}: cannot make the folder: {error.strerror}") from error
