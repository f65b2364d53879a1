"""Iceberg tables: which snapshot, and when its changes are not known. Real ones: tests/interop."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from broker_core_spark.batch.build_errors import NothingToKeep
from broker_core_spark.batch.sources.iceberg_changes import pin_iceberg
from tests.support.narrowed import present

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "`lake`.`d``b`.`topics`"


class Lake:
    """A session with one table: its branches, its log of metadata, and what is read of it."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.folder = folder
        self.refs: list[tuple[str, int]] = [("main", 30), ("other", 7)]
        self.log: list[tuple[str, int | None, int | None]] = [
            ("1", None, None),
            ("2", 10, 0),
            ("3", 20, 1),
            ("4", 30, 1),
        ]
        self.catalog = SimpleNamespace(
            getTable=lambda name: SimpleNamespace(catalog="lake", namespace=["d`b"], name=name)
        )

    @property
    def read(self) -> Any:
        return _Reader(self.spark)

    def table(self, name: str) -> Any:
        if name == f"{NAME}.refs":
            return self.spark.createDataFrame(self.refs, "name string, snapshot_id long")
        assert name == f"{NAME}.metadata_log_entries"
        log = [(str(self.folder / f"{file}.metadata.json"), *rest) for file, *rest in self.log]
        return self.spark.createDataFrame(
            log, "file string, latest_snapshot_id long, latest_schema_id int"
        ).coalesce(1)

    def change_columns(self, schema: int) -> None:
        """The table is changed after its last snapshot."""
        self.log.append(("5", 30, 1))
        text = json.dumps({"format-version": 2, "current-schema-id": schema})
        (self.folder / "5.metadata.json").write_text(text, encoding="utf-8")


class _Reader:
    def __init__(self, spark: SparkSession) -> None:
        self.text = spark.read.text
        self.options: dict[str, Any] = {}

    def option(self, key: str, value: Any) -> _Reader:
        self.options[key] = value
        return self

    def table(self, name: str) -> tuple[str, dict[str, Any]]:
        return name, self.options


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Any:
    return Lake(spark, tmp_path)


def test_a_table_is_read_at_its_snapshot(lake: Any) -> None:
    current: Any = pin_iceberg(lake, "topics", None)
    assert current.stamp == "iceberg 30 1"
    assert current.rows == (NAME, {"versionAsOf": 30})
    assert current.changed_rows("iceberg 20 1") == (
        f"{NAME}.changes",
        {"start-snapshot-id": "20", "end-snapshot-id": "30"},
    )
    assert pin_iceberg(lake, "topics", 10).stamp == "iceberg 10 0"


def test_tables_without_a_known_snapshot(lake: Any) -> None:
    with pytest.raises(NothingToKeep, match="log of metadata does not reach back to snapshot 5"):
        pin_iceberg(lake, "topics", 5)
    lake.refs = [("other", 7)]
    with pytest.raises(NothingToKeep, match="no snapshot yet"):
        pin_iceberg(lake, "topics", None)


@pytest.mark.parametrize(
    ("since", "reason"),
    [("delta x 1 2 3", "another table"), ("iceberg 20", "another table"), ("iceberg 10 0", "columns")],
)
def test_changes_that_are_not_known(lake: Any, since: str, reason: str) -> None:
    with pytest.raises(NothingToKeep, match=reason):
        present(pin_iceberg(lake, "topics", None).changed_rows)(since)


def test_columns_that_were_changed_after_the_snapshot(lake: Any) -> None:
    lake.change_columns(1)  # something else was changed
    assert pin_iceberg(lake, "topics", None).stamp == "iceberg 30 1"
    at_snapshot: Any = pin_iceberg(lake, "topics", 30)
    lake.change_columns(2)
    with pytest.raises(NothingToKeep, match="columns of the table were changed after its last snapshot"):
        pin_iceberg(lake, "topics", None)
    assert pin_iceberg(lake, "topics", 30).stamp == at_snapshot.stamp
    with pytest.raises(NothingToKeep, match="columns"):
        at_snapshot.changed_rows("iceberg 20 1")
