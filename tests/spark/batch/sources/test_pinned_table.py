"""Tables at one version: how a source says which."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from broker_core_spark.batch.build_errors import NothingToKeep
from broker_core_spark.batch.sources.pinned_table import name_and_version, pin_column
from tests.support.narrowed import present

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ("lake.db.topics", ("lake.db.topics", None)),
        ("lake.db.topics VERSION AS OF 7", ("lake.db.topics", 7)),
        (
            "delta.`/data/topics` version  as of 8720591709190680059",
            ("delta.`/data/topics`", 8720591709190680059),
        ),
        ("topics VERSION AS OF yesterday", ("topics VERSION AS OF yesterday", None)),
        (" VERSION AS OF 7", (" VERSION AS OF 7", None)),
    ],
)
def test_the_version_is_said_as_in_sql(table: str, expected: tuple[str, int | None]) -> None:
    assert name_and_version(table) == expected


def test_times_and_numbers_are_versions(spark: SparkSession) -> None:
    began = datetime(2026, 3, 1, tzinfo=UTC)
    rows = [
        (f"t-{number}", began + timedelta(microseconds=number), number, number == 1) for number in range(4)
    ]
    frame = spark.createDataFrame(
        [*rows, ("never", None, None, None)], "name string, at timestamp, n int, deleted boolean"
    )
    for column in ("at", "n"):
        early, now = (
            pin_column(frame.where("n < 2 OR n IS NULL"), "t", column),
            pin_column(frame, "t", column),
        )
        changed = present(now.changed_rows)(early.stamp).collect()
        assert sorted(row["name"] for row in changed) == ["t-2", "t-3"]
        assert {row["_change_type"] for row in changed} == {"insert"}
        assert sorted(row["name"] for row in now.rows.collect()) == ["never", "t-0", "t-2", "t-3"]
        with pytest.raises(NothingToKeep, match="a later state"):
            present(early.changed_rows)(now.stamp)
    for other in (pin_column(frame, "t", "at"), pin_column(frame, "another", "n")):
        with pytest.raises(NothingToKeep, match="of another table"):
            present(pin_column(frame, "t", "n").changed_rows)(other.stamp)
    empty = pin_column(frame.where("name = ''"), "t", "n")
    assert present(pin_column(frame, "t", "n").changed_rows)(empty.stamp).count() == 4
