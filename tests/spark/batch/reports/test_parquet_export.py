"""The Parquet table of counts and hashes."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pyarrow.parquet as pq
import pytest

from broker_core.listing.topics_hash import topics_hash
from broker_core_spark.batch.errors import BatchError
from broker_core_spark.batch.reports.parquet_export import export_totals, totals_table
from tests.support.spark_catalogues import result_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS: list[dict[str, Any]] = [
    {"namespace": "a/b", "pattern": "persistent://a/b/t.*"},
    {"namespace": "a/b", "mode": "ALL", "properties": {"k": "v", "z": "0"}},
]
PUBLISHED = datetime(2026, 3, 1, 10, 15, tzinfo=UTC)
NO_SPARK = cast(Any, None)  # a local file is written without Spark


def test_one_row_a_question(tmp_path: Path) -> None:
    result = replace(result_of(tmp_path / "store", ROWS, {"a/b": ["t1", "x"]}), published=PUBLISHED)
    for target in (str(tmp_path / "one.parquet"), (tmp_path / "two.parquet").as_uri()):
        export_totals(NO_SPARK, target, result)
    rows = {row["mode"]: row for row in pq.read_table(tmp_path / "one.parquet").to_pylist()}
    assert rows["PERSISTENT"] == {
        "namespace": "a/b",
        "mode": "PERSISTENT",
        "pattern": "a/b/t.*",
        "properties": [],
        "count": 1,
        "hash": topics_hash(["persistent://a/b/t1"]),
        "version": 3,
        "generation": result.generation,
        "number": 1,
        "published": PUBLISHED,
    }
    assert (rows["ALL"]["pattern"], rows["ALL"]["properties"], rows["ALL"]["count"]) == (
        None,
        [("k", "v")],
        0,
    )
    assert pq.read_table(tmp_path / "two.parquet") == totals_table(result)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.parquet", "store", "two.parquet"]


def test_what_cannot_be_written(spark: SparkSession, tmp_path: Path) -> None:
    result = result_of(tmp_path / "store", ROWS, {"a/b": ["t1"]})
    with pytest.raises(BatchError, match="the generation is published"):
        export_totals(NO_SPARK, str(tmp_path / "none" / "x.parquet"), result)
    with pytest.raises(BatchError, match="the generation is published"):
        export_totals(spark, "nonsense://bucket/x.parquet", result)
