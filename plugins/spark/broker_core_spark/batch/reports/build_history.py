"""The history of builds: tables that each build appends a row to, and if asked a row for each question.

A table is a folder, and a build adds one Parquet file to it. So builds at once do not disturb each other, and Spark,
DuckDB or pandas read the folder as one table. Or it is a table of the session, of any format.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from broker_core_spark.batch.errors import BatchError
from broker_core_spark.batch.reports.parquet_export import (
    check_export,
    parquet_bytes,
    put_table,
    totals_table,
)
from broker_core_spark.batch.reports.session_table import append_to_table, check_table
from broker_core_spark.batch.source_address import is_of_spark, is_table_name
from broker_core_spark.errors import StoreFailed
from broker_core_spark.store.addressed_folder import addressed_folder

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

    At ``table:NAME`` they are the tables ``NAME`` and ``NAME_questions`` of the session, which are made if need be.
    Raises :exc:`BatchError`, which says that the generation is published.
    """
    tables = {_BUILDS: history_row(result)}
    if questions:
        tables[_QUESTIONS] = totals_table(result)
    file = f"{result.number:012}-{result.generation[:12]}.parquet"
    try:
        for kind, table in tables.items():
            if is_table_name(address):
                append_to_table(spark, _table(address, kind), table)
            elif is_of_spark(address):
                put_table(spark, _folder(address, kind), table, append=True)
            else:
                addressed_folder(_folder(address, kind), options).write(file, parquet_bytes(table))
    except (BatchError, StoreFailed) as error:
        raise BatchError(f"Cannot append to the history: {error}; the generation is published") from error


def check_history(spark: SparkSession, address: str, options: Mapping[str, str] | None = None) -> None:
    """Raise unless the tables can be written, as far as that shows before a build. Makes their folders."""
    for kind in (_BUILDS, _QUESTIONS):
        if is_table_name(address):
            check_table(spark, _table(address, kind))
        elif is_of_spark(address):
            check_export(spark, _folder(address, kind), options)
        else:
            addressed_folder(_folder(address, kind), options).check_writable()


def _folder(address: str, kind: str) -> str:
    return f"{address.rstrip('/')}/{kind}"


def _table(address: str, kind: str) -> str:
    """The name of the table: that of builds is the one that is given."""
    name = address.removeprefix("table:")
    return name if kind == _BUILDS else f"{name}_{kind}"
