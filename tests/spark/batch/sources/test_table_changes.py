"""The names in changed rows: what moved did not change, and what is no topic makes a full build."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from broker_core_spark.batch.build_errors import NothingToKeep
from broker_core_spark.batch.sources import table_changes
from broker_core_spark.batch.sources.table_changes import changed_names

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_COLUMNS = "name string, namespace string, domain string, _change_type string, p0 string"
Row = tuple[str | None, str | None, str | None, str, str | None]


def changes(spark: SparkSession, rows: list[Row]) -> DataFrame:
    return spark.createDataFrame(rows, _COLUMNS).coalesce(1)


def test_rows_that_were_moved_did_not_change(spark: SparkSession) -> None:
    rows: list[Row] = [
        ("moved", "a/b", None, "DELETE", "eu"),
        ("moved", "a/b", None, "INSERT", "eu"),
        ("there and back", "a/b", None, "delete", None),
        ("there and back", "a/b", None, "insert", None),
        ("twice now", "a/b", None, "INSERT", None),
        ("twice now", "a/b", None, "DELETE", None),
        ("twice now", "a/b", None, "INSERT", None),
        ("gone", "a/b", "non-persistent", "DELETE", None),
        ("persistent://a/c/full", None, None, "INSERT", None),
        ("full", "a/c", None, "INSERT", None),
        ("changed", "a/b", None, "update_preimage", "eu"),
        ("changed", "a/b", None, "update_postimage", "us"),
    ]
    found = changed_names(changes(spark, rows), None)
    assert found == {
        "a/b": {("non-persistent", "gone"), ("persistent", "changed"), ("persistent", "twice now")},
        "a/c": {("persistent", "full")},
    }


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ((None, None, None, "INSERT", None), r"no name \(null\)"),
        (("local", None, None, "DELETE", None), "without a namespace"),
        (("persistent://a/b", None, None, "INSERT", None), "expected domain"),
    ],
)
def test_rows_that_are_no_topics(spark: SparkSession, row: Row, reason: str) -> None:
    with pytest.raises(NothingToKeep, match=f"a changed row is no topic: .*{reason}"):
        changed_names(changes(spark, [row]), None)


def test_many_names_are_not_collected(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_changes, "MOST_NAMES", 2)
    rows: list[Row] = [(f"t{number}", None, None, "INSERT", None) for number in range(3)]
    assert changed_names(changes(spark, rows[:2]), "a/b") == {
        "a/b": {("persistent", "t0"), ("persistent", "t1")}
    }
    with pytest.raises(NothingToKeep, match="more than 2 names changed"):
        changed_names(changes(spark, rows), "a/b")
