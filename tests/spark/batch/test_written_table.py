"""Tables that Spark writes: replaced or appended to at an address, appended to by column names in a session's table."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from broker_core_spark.batch.build_errors import BatchError
from broker_core_spark.batch.written_table import (
    check_folder,
    check_table,
    history_tables,
    write_table,
)
from tests.support.spark_catalogues import temporary_views

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture
def schema(spark: SparkSession, tmp_path: Path) -> Iterator[str]:
    """A schema of the session with a folder of its own."""
    name = f"history_{uuid.uuid4().hex}"
    spark.sql(f"CREATE SCHEMA {name} LOCATION '{tmp_path}/warehouse'")
    yield name
    spark.sql(f"DROP SCHEMA {name} CASCADE")


def frame(spark: SparkSession, **columns: list[Any]) -> DataFrame:
    return spark.createDataFrame(pa.table(columns))


def test_rows_are_appended_by_column_names(spark: SparkSession, schema: str) -> None:
    address, views = f"table:{schema}.some", temporary_views(spark)
    check_table(spark, address)
    write_table(frame(spark, a=[1], b=["x"]), address)
    check_table(spark, address)
    write_table(frame(spark, b=["y"], a=[2]), address)
    write_table(frame(spark, a=[3]), address, append=True)
    rows = spark.table(f"{schema}.some").orderBy("a").collect()
    assert [(row["a"], row["b"]) for row in rows] == [(1, "x"), (2, "y"), (3, None)]
    with pytest.raises(BatchError, match=rf"Cannot write the table {address}: .*EXTRA_COLUMNS"):
        write_table(frame(spark, other=[4]), address)
    assert temporary_views(spark) == views


def test_a_folder_is_replaced_or_appended_to(spark: SparkSession, tmp_path: Path) -> None:
    address = (tmp_path / "new" / "some.parquet").as_uri()
    check_table(spark, address)
    for append in (False, True, True, False, True):
        write_table(frame(spark, a=[1]), address, append=append)
    check_table(spark, address)
    assert spark.read.parquet(address).count() == 2


def test_what_cannot_be_written_is_said_before_a_build(spark: SparkSession, tmp_path: Path) -> None:
    for name, reason in (("nowhere.some", "there is no schema nowhere"), ("a b; DROP TABLE x", "SYNTAX")):
        with pytest.raises(BatchError, match=f"Cannot write the table table:{name}: .*{reason}"):
            check_table(spark, f"table:{name}")
    with pytest.raises(BatchError, match=r"nonsense://bucket/x: .*FileSystem.*such as s3a://"):
        check_table(spark, "nonsense://bucket/x")
    (tmp_path / "file").touch()
    with pytest.raises(BatchError, match=f"{tmp_path}/file is no folder that can be written"):
        check_folder(str(tmp_path / "file" / "x.parquet"))
    for address in ("table:a.b", "s3a://bucket/x", str(tmp_path / "a" / "b")):
        check_folder(address)
    with pytest.raises(BatchError, match="Cannot write the table"):
        write_table(frame(spark, a=[1]), f"{tmp_path}/file/x.parquet")


def test_the_tables_of_a_history() -> None:
    assert history_tables("/h/") == ("/h/builds", "/h/questions")
    assert history_tables("table:a.b") == ("table:a.b", "table:a.b_questions")
