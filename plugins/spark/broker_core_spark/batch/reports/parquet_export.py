"""The Parquet table of a generation's counts and hashes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.parquet as pq

from broker_core_spark.batch.errors import BatchError
from broker_core_spark.batch.source_address import is_of_spark
from broker_core_spark.batch.spark.run_on_partitions import is_spark_error, spark_message
from broker_core_spark.errors import StoreFailed
from broker_core_spark.store.addressed_file import addressed_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from broker_core_spark.batch.build_result import BuildResult

__all__ = ["TOTALS_SCHEMA", "check_export", "export_totals", "parquet_bytes", "put_table", "totals_table"]

TOTALS_SCHEMA: Final = pa.schema(
    [
        ("namespace", pa.string()),
        ("mode", pa.string()),
        ("pattern", pa.string()),
        ("properties", pa.map_(pa.string(), pa.string())),
        ("count", pa.int64()),
        ("hash", pa.string()),
        ("version", pa.int64()),
        ("generation", pa.string()),
        ("number", pa.int64()),
        ("published", pa.timestamp("us", "UTC")),
    ]
)


def totals_table(result: BuildResult) -> pa.Table:
    """One row a question. The pattern is without scheme (null: all topics). The version is its namespace's.

    Every row has the generation, its number and the time of its publication.
    """
    versions, totals = result.manifest.namespaces, result.totals
    selectors = [question.selector for question in totals.questions]
    columns = {
        "namespace": [question.namespace for question in totals.questions],
        "mode": [question.mode.name for question in totals.questions],
        "pattern": [selector.pattern for selector in selectors],
        "properties": [list(selector.properties) for selector in selectors],
        "count": totals.counts,
        "hash": [total.topics_hash for total in totals],
        "version": [versions[question.namespace] for question in totals.questions],
        "generation": pa.repeat(result.generation, len(totals)),
        "number": pa.repeat(result.number, len(totals)),
        "published": [result.published] * len(totals),
    }
    return pa.Table.from_pydict(columns, schema=TOTALS_SCHEMA)


def export_totals(
    spark: SparkSession, address: str, result: BuildResult, options: Mapping[str, str] | None = None
) -> None:
    """Write the table: one file at a path or in a bucket, else a folder of files through the session's file systems.

    ``options`` are those of the bucket.
    """
    try:
        put_table(spark, address, totals_table(result), options)
    except BatchError as error:
        raise BatchError(f"{error}; the generation is published") from error


def put_table(
    spark: SparkSession,
    address: str,
    table: pa.Table,
    options: Mapping[str, str] | None = None,
    *,
    append: bool = False,
) -> None:
    """Write a table as :func:`export_totals` does. Raises :exc:`BatchError`.

    ``append`` adds to the table at an address of the session's file systems.
    """
    try:
        if is_of_spark(address):
            spark.createDataFrame(table).coalesce(1).write.mode("append" if append else "overwrite").parquet(
                address
            )
            return
        addressed_file(address, options).write(parquet_bytes(table))
    except Exception as error:
        if not is_spark_error(error) and not isinstance(error, StoreFailed):
            raise
        said = str(error) if isinstance(error, StoreFailed) else f"{address}: {spark_message(error)}"
        raise BatchError(f"Cannot write the table {said}") from error


def parquet_bytes(table: pa.Table) -> bytes:
    """The Parquet file of a table."""
    buffer = pa.BufferOutputStream()
    pq.write_table(table, buffer, compression="zstd")
    return bytes(buffer.getvalue())


def check_export(spark: SparkSession, address: str, options: Mapping[str, str] | None = None) -> None:
    """Raise unless the table can be written, as far as that shows before a build.

    Raises :exc:`StoreFailed` for a path or a bucket that takes no file, and :exc:`BatchError` for an address whose file
    system the session does not know.
    """
    if not is_of_spark(address):
        addressed_file(address, options).check_writable()
        return
    try:
        spark.read.parquet(address)
    except Exception as error:
        if not is_spark_error(error):
            raise
        said = spark_message(error)
        # There is no table yet, or an empty folder.
        if "PATH_NOT_FOUND" not in said and "UNABLE_TO_INFER_SCHEMA" not in said:
            raise BatchError(f"Cannot write the table {address}: {said}") from error
