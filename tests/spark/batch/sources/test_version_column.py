"""A column of versions: rows whose value grew are changed rows, from a stamp to the next."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from broker_core_spark.batch.build_errors import NothingToKeep
from broker_core_spark.batch.sources.version_column import pin_column

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_times_and_numbers_are_versions(spark: SparkSession) -> None:
    began = datetime(2026, 3, 1, tzinfo=UTC)
    rows = [
        (f"t-{number}", began + timedelta(microseconds=number), number, number == 1) for number in range(4)
    ]
    frame = spark.createDataFrame(
        [*rows, ("never", None, None, None)], "name string, at timestamp, n int, deleted boolean"
    )
    for column in ("at", "n"):
        early, now = pin_column(frame.where("n < 2 OR n IS NULL"), column), pin_column(frame, column)
        changed = now.changed_rows(early.stamp).collect()
        assert sorted(row["name"] for row in changed) == ["t-2", "t-3"]
        assert {row["_change_type"] for row in changed} == {"insert"}
        assert sorted(row["name"] for row in now.rows.collect()) == ["never", "t-0", "t-2", "t-3"]
        with pytest.raises(NothingToKeep, match="a later state"):
            early.changed_rows(now.stamp)
    with pytest.raises(NothingToKeep, match="of another table"):
        pin_column(frame, "n").changed_rows(pin_column(frame, "at").stamp)
    empty = pin_column(frame.where("name = ''"), "n")
    assert pin_column(frame, "n").changed_rows(empty.stamp).count() == 4
