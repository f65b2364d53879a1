"""A table that the session knows by its name, of any format: made if need be, and rows are appended by column names."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa

from broker_core_spark.batch.errors import BatchError
from broker_core_spark.batch.spark.run_on_partitions import is_spark_error, spark_message

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["append_to_table", "check_table"]


def append_to_table(spark: SparkSession, name: str, table: pa.Table) -> None:
    """Append rows to the table ``name``, which may have more columns than they. Raises :exc:`BatchError`."""
    with _failing(name):
        frame = spark.createDataFrame(table).coalesce(1)
        if not spark.catalog.tableExists(name):
            frame.write.saveAsTable(name)
            return
        view = f"broker_core_{uuid.uuid4().hex}"
        frame.createTempView(view)
        try:
            # An insert asks for no format, as a writer of frames does.
            spark.sql(f"INSERT INTO {name} BY NAME SELECT * FROM {view}")  # noqa: S608 - a name that Spark has parsed
        finally:
            spark.catalog.dropTempView(view)


def check_table(spark: SparkSession, name: str) -> None:
    """Raise :exc:`BatchError` unless rows can be appended, as far as that shows beforehand."""
    with _failing(name):
        if spark.catalog.tableExists(name):
            return
        schema = name.rpartition(".")[0]
        if schema and not spark.catalog.databaseExists(schema):
            raise BatchError(f"Cannot write the table {name}: there is no schema {schema}")


@contextmanager
def _failing(name: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        if not is_spark_error(error):
            raise
        raise BatchError(f"Cannot write the table {name}: {spark_message(error)}") from error
