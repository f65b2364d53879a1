"""A table of the session: made if need be, and appended to by column names."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from broker_core_spark.batch.errors import BatchError
from broker_core_spark.batch.reports.build_history import HISTORY_SCHEMA, append_history, check_history
from broker_core_spark.batch.reports.session_table import append_to_table, check_table
from tests.support.spark_catalogues import result_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def schema(spark: SparkSession, tmp_path: Path) -> Iterator[str]:
    """A schema of the session with a folder of its own."""
    name = f"history_{uuid.uuid4().hex}"
    spark.sql(f"CREATE SCHEMA {name} LOCATION '{tmp_path}/warehouse'")
    yield name
    spark.sql(f"DROP SCHEMA {name} CASCADE")


def test_rows_are_appended_by_column_names(spark: SparkSession, schema: str) -> None:
    name = f"{schema}.some"
    check_table(spark, name)
    append_to_table(spark, name, pa.table({"a": [1], "b": ["x"]}))
    check_table(spark, name)
    append_to_table(spark, name, pa.table({"b": ["y"], "a": [2]}))
    append_to_table(spark, name, pa.table({"a": [3]}))
    rows = spark.table(name).orderBy("a").collect()
    assert [(row["a"], row["b"]) for row in rows] == [(1, "x"), (2, "y"), (3, None)]
    with pytest.raises(BatchError, match=rf"Cannot write the table {name}: .*EXTRA_COLUMNS"):
        append_to_table(spark, name, pa.table({"other": [4]}))
    assert not [table for table in spark.catalog.listTables() if table.isTemporary]


def test_a_name_that_is_none_is_told_before_a_build(spark: SparkSession) -> None:
    for name, reason in (("nowhere.some", "there is no schema nowhere"), ("a b; DROP TABLE x", "SYNTAX")):
        with pytest.raises(BatchError, match=f"Cannot write the table {name}: .*{reason}"):
            check_table(spark, name)


def test_the_history_of_builds(spark: SparkSession, schema: str, tmp_path: Path) -> None:
    result = result_of(tmp_path / "store", [{"namespace": "a/b", "pattern": "x.*"}], {"a/b": ["x1"]})
    address = f"table:{schema}.builds"
    check_history(spark, address)
    append_history(spark, address, result)
    append_history(spark, address, result, questions=True)
    builds = spark.table(f"{schema}.builds")
    assert builds.columns == HISTORY_SCHEMA.names
    assert builds.count() == 2
    assert spark.table(f"{schema}.builds_questions").count() == 1
    with pytest.raises(BatchError, match="the generation is published"):
        append_history(spark, "table:nowhere.builds", result)
