"""The history of builds: one file a build, read as one table."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pyarrow.parquet as pq
import pytest

from broker_core_spark.batch.builder import Builder
from broker_core_spark.batch.errors import BatchError
from broker_core_spark.batch.reports.build_history import HISTORY_SCHEMA, append_history, check_history
from broker_core_spark.errors import StoreFailed
from tests.support.spark_catalogues import result_of

NO_SPARK = cast(Any, None)  # a local table is written without Spark
WHEN = datetime(2026, 3, 1, 10, 15, tzinfo=UTC)


def test_each_build_appends_a_row(tmp_path: Path) -> None:
    rows = [{"namespace": "a/b", "pattern": "a/b/x.*"}, {"namespace": "no/where", "pattern": "x"}]
    first = replace(
        result_of(tmp_path / "store", rows, {"a/b": ["x1"]}),
        builder=Builder("ann", "host1", 7, "run1", "0.1", "4.1.0", "3.12.0"),
        began=WHEN,
        published=WHEN,
        seconds={"total": 2.5},
    )
    address = (tmp_path / "history").as_uri()
    check_history(NO_SPARK, address)
    for result in (first, replace(first, number=2, builder=None)):
        append_history(NO_SPARK, address, result, questions=result is first)
    table = pq.read_table(tmp_path / "history" / "builds").sort_by("number")
    assert table.schema.equals(HISTORY_SCHEMA)
    assert table.column("number").to_pylist() == [1, 2]
    assert table.column("user").to_pylist() == ["ann", None]
    row = table.to_pylist()[0]
    assert (row["published"], row["seconds"], row["questions"], row["matches"]) == (WHEN, 2.5, 1, 1)
    assert (row["left_out"], row["coverage"], row["added"]) == (1, 0.5, None)
    questions = pq.read_table(tmp_path / "history" / "questions")
    assert questions.column("number").to_pylist() == [1]


def test_a_place_that_takes_no_history_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreFailed, match="cannot make the folder"):
        check_history(NO_SPARK, str(tmp_path / "file"))
    result = result_of(tmp_path / "store", [], {"a/b": ["t"]})
    (tmp_path / "history" / "builds" / f"{1:012}-{result.generation[:12]}.parquet").mkdir(parents=True)
    with pytest.raises(BatchError, match="the generation is published"):
        append_history(NO_SPARK, str(tmp_path / "history"), result)
