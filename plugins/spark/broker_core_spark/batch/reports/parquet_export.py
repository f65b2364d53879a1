"""The Parquet table of a generation's counts and hashes."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq

from broker_core_spark.batch.errors import BatchError
from broker_core_spark.batch.spark.run_on_partitions import is_spark_error, spark_message

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from broker_core_spark.batch.build_result import BuildResult

__all__ = ["export_totals", "totals_table"]

_SCHEMA = pa.schema(
    [
        ("namespace", pa.string()),
        ("mode", pa.string()),
        ("pattern", pa.string()),
        ("properties", pa.map_(pa.string(), pa.string())),
        ("count", pa.int64()),
        ("hash", pa.string()),
        ("version", pa.int64()),
    ]
)


def totals_table(result: BuildResult) -> pa.Table:
    """One row a question. The pattern is without scheme (null: all topics). The version is its namespace's."""
    versions = result.manifest.namespaces
    rows = [
        {
            "namespace": total.question.namespace,
            "mode": total.question.mode.name,
            "pattern": total.question.selector.pattern,
            "properties": list(total.question.selector.properties),
            "count": total.count,
            "hash": total.topics_hash,
            "version": versions[total.question.namespace],
        }
        for total in result.totals
    ]
    return pa.Table.from_pylist(rows, schema=_SCHEMA)


def export_totals(spark: SparkSession, uri: str, result: BuildResult) -> None:
    """Write the table: a file at a local path, or a folder of files through the session's file systems."""
    table = totals_table(result)
    if "://" in uri and not uri.startswith("file:"):
        try:
            spark.createDataFrame(table).coalesce(1).write.mode("overwrite").parquet(uri)
        except Exception as error:
            if not is_spark_error(error):
                raise
            said = spark_message(error)
            raise BatchError(f"Cannot write the table {uri}: {said}; the generation is published") from error
        return
    path = Path(unquote(urlsplit(uri).path) if uri.startswith("file:") else uri)
    partial = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        try:
            pq.write_table(table, partial, compression="zstd")
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        said = error.strerror or str(error)
        raise BatchError(f"Cannot write the table {path}: {said}; the generation is published") from error
