"""Rows of namespaces that nobody asks about are not read, and Parquet skips them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from broker_core_spark.batch.sources.rows_of_namespaces import in_namespaces

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = [
    ("persistent://a/b/full", None),
    ("non-persistent://a/b/other", None),
    ("persistent://a/b-1/full", None),
    ("persistent://x/y/full", None),
    ("local", "a/b"),
    ("persistent://a/b/said", "a/b"),
    ("local", "x/y"),
    ("local", None),
]


@pytest.mark.parametrize("more", [0, 40])
def test_rows_of_the_asked_namespaces_are_read(spark: SparkSession, more: int) -> None:
    from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

    frame = spark.createDataFrame(ROWS, "name string, namespace string")
    asked = ["a/b", *(f"other/ns-{number}" for number in range(more))]

    def read(*, column: bool, default: str | None) -> list[int]:
        namespace = F.col("namespace") if column else None
        chosen = frame.filter(in_namespaces(F.col("name"), namespace, asked, default))
        return sorted(ROWS.index((row["name"], row["namespace"])) for row in chosen.collect())

    # Nobody can say where the last one belongs: staging says so.
    assert read(column=True, default=None) == [0, 1, 4, 5, 7]
    assert read(column=True, default="a/b") == [0, 1, 4, 5, 7]
    assert read(column=True, default="x/y") == [0, 1, 4, 5]
    assert read(column=False, default=None) == [0, 1, 5]
    assert read(column=False, default="x/y") == [0, 1, 5]
    assert read(column=False, default="a/b") == [0, 1, 4, 5, 6, 7]


def test_the_condition_goes_down_to_parquet(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

    names = pa.array([f"persistent://a/ns-{number:02}/t" for number in range(50)])
    places = pa.array([f"a/ns-{number:02}" for number in range(50)])
    pq.write_table(pa.table({"name": names, "namespace": places}), tmp_path / "t.parquet")
    frame = spark.read.parquet(str(tmp_path / "t.parquet"))
    for namespace, pushed in (
        (None, "StringStartsWith(name,"),
        ("namespace", "In(namespace"),
    ):
        column = None if namespace is None else F.col(namespace)
        chosen = frame.filter(in_namespaces(F.col("name"), column, ["a/ns-07", "a/ns-08"]))
        chosen.explain()
        (line,) = [line for line in capsys.readouterr().out.splitlines() if "PushedFilters" in line]
        assert pushed in line.partition("PushedFilters")[2]
        assert chosen.count() == 2
