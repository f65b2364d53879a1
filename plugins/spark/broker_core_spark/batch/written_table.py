"""Tables that Spark writes: Parquet at an address of its file systems, or a table that the session knows."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from broker_core_spark.batch.build_errors import BatchError
from broker_core_spark.batch.source_address import is_table_name, path_of
from broker_core_spark.batch.source_redaction import redacted_source
from broker_core_spark.batch.spark.spark_errors import spark_errors, spark_message

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["check_folder", "check_table", "failing_to_write", "history_tables", "write_table"]

#: The advice if Spark does not know the file system of an address.
_CONNECTOR: Final = (
    ": Spark writes tables by connectors of its own, such as s3a:// by "
    "--conf spark.jars.packages=org.apache.hadoop:hadoop-aws:3.4.2"
)


def write_table(frame: DataFrame, address: str, *, append: bool = False) -> None:
    """Write the rows of a frame in place of a table, or after its rows.

    Rows are always appended at ``table:NAME``, by the names of the columns: the table may have more columns, and is
    made if need be. Raises :exc:`BatchError`.
    """
    with failing_to_write(address):
        spark, name = frame.sparkSession, address.removeprefix("table:")
        if not is_table_name(address):
            frame.write.mode("append" if append else "overwrite").parquet(address)
        elif not spark.catalog.tableExists(name):
            frame.write.saveAsTable(name)
        else:
            # An insert asks for no format, as a writer of frames does. Iceberg's parser takes no parameter for a name.
            quoted = name.replace("{", "{{").replace("}", "}}")
            spark.sql(f"INSERT INTO {quoted} BY NAME SELECT * FROM {{frame}}", frame=frame)  # noqa: S608 - Spark parsed it


def check_table(spark: SparkSession, address: str) -> None:
    """Raise :exc:`BatchError` unless rows can be written, as far as that shows before a build."""
    check_folder(address)
    with failing_to_write(address, need_not_be=True):
        if not is_table_name(address):
            spark.read.parquet(address)
            return
        name = address.removeprefix("table:")
        schema = name.rpartition(".")[0]
        if not spark.catalog.tableExists(name) and schema and not spark.catalog.databaseExists(schema):
            raise BatchError(f"Cannot write the table {address}: there is no schema {schema}")


def check_folder(address: str) -> None:
    """Raise :exc:`BatchError` unless a folder of this machine can be made. Other addresses are not checked."""
    if is_table_name(address) or ("://" in address and not address.startswith("file:")):
        return
    path = path_of(address).absolute()
    place = next(above for above in (path, *path.parents) if above.exists())
    if not place.is_dir() or not os.access(place, os.W_OK | os.X_OK):
        raise BatchError(f"Cannot write the table {address}: {place} is no folder that can be written")


def history_tables(address: str) -> tuple[str, str]:
    """The addresses of the builds and of the questions of a history: folders in it, or two tables."""
    if is_table_name(address):
        return address, f"{address}_questions"
    folder = address.rstrip("/")
    return f"{folder}/builds", f"{folder}/questions"


@contextmanager
def failing_to_write(address: str, *, need_not_be: bool = False) -> Iterator[None]:
    """Turns errors of Spark into :exc:`BatchError`. With ``need_not_be`` a table that is not there is no error."""
    try:
        yield
    except spark_errors() as error:
        said = spark_message(error)
        if need_not_be and ("PATH_NOT_FOUND" in said or "UNABLE_TO_INFER_SCHEMA" in said):
            return
        hint = _CONNECTOR if "FileSystem" in said else ""
        raise BatchError(f"Cannot write the table {redacted_source(address)}: {said}{hint}") from error
