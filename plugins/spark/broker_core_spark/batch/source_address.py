"""Addresses of sources: a table that Spark reads, a file in a bucket, or a file by its path."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from broker_core_spark.batch.build_errors import BatchError, InvalidCatalogue

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = [
    "FRAME",
    "frame_of",
    "is_in_bucket",
    "is_of_spark",
    "is_table",
    "is_table_name",
    "path_of",
    "table_now",
]

#: The text in place of an address if the rows are given as a DataFrame.
FRAME: Final = "DataFrame"
#: Buckets of the plugin's own client, as of stores. ``s3a://`` and the like are for Spark's connectors.
_BUCKETS: Final = ("s3://", "gs://", "az://", "memory://")


def frame_of(what: str, source: object, kind: type[BatchError]) -> DataFrame:
    """The DataFrame of a source that is no address. Raises an error of this kind for any other object."""
    from pyspark.sql import DataFrame

    if not isinstance(source, DataFrame):
        raise kind(
            f"{what} of the type {type(source).__module__}.{type(source).__qualname__}: an address (a text) or "
            "a DataFrame of Spark is expected; spark.createDataFrame makes one of pandas or of rows"
        )
    return source


def is_in_bucket(address: str) -> bool:
    """Whether the plugin reads and writes a file of this address itself, without Spark's connectors."""
    return address.startswith(_BUCKETS)


def is_of_spark(address: str) -> bool:
    """Whether the file systems of the session write the address, such as ``s3a://`` or ``hdfs://``."""
    return "://" in address and not address.startswith("file:") and not is_in_bucket(address)


def is_table_name(address: str) -> bool:
    """Whether the address is that of a table that the session knows by its name."""
    return address.startswith("table:")


def is_table(source: str) -> bool:
    """Whether Spark reads the source, through the session's connectors."""
    return is_table_name(source) or source.partition("?")[0].rstrip("/").endswith(".parquet")


def table_now(spark: SparkSession, name: str) -> DataFrame:
    """The rows of a table as it is now. A session keeps the files of a table, and a catalogue of Iceberg its metadata,
    though others have changed them.
    """
    spark.catalog.refreshTable(name)
    return spark.table(name)


def path_of(source: str) -> Path:
    """The path of a file, from a path or ``file://``. Raises :exc:`InvalidCatalogue` for other addresses."""
    if source.startswith("file:"):
        return Path(unquote(urlsplit(source).path))
    if source.startswith(("http://", "https://")):
        raise InvalidCatalogue("a running server is read by --broker URL, with --namespace")
    if "://" in source:
        raise InvalidCatalogue(
            f"No catalogue of the kind {source.partition('://')[0]!r}: use a path, postgresql://, table:NAME, "
            "or a .parquet file"
        )
    return Path(source)
