"""Delta tables: which version, and when its changes are not known. Real ones: tests/interop."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from broker_core_spark.batch.build_errors import NothingToKeep
from broker_core_spark.batch.sources.delta_changes import pin_delta
from tests.support.narrowed import present

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Lake:
    """A session with one table of versions 0 to 4, which were committed a second after each other."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self.id = "id-1"
        self.seconds = [0, 1, 2, 3, 4]
        self.columns = "name string"
        self.settings: dict[str, str] = {}

    @property
    def read(self) -> _Reader:
        return _Reader(self)

    @property
    def conf(self) -> dict[str, str]:
        return self.settings

    def table(self, name: str) -> DataFrame:
        assert name == "topics"
        return self.spark.createDataFrame([], self.columns)

    def sql(self, query: str) -> DataFrame:
        if query == "DESCRIBE DETAIL topics":
            return self.spark.createDataFrame([(self.id,)], "id string")
        found = present(re.fullmatch("DESCRIBE HISTORY topics(?: LIMIT ([0-9]+))?", query))
        rows = [(version, datetime.fromtimestamp(second, UTC)) for version, second in enumerate(self.seconds)]
        return self.spark.createDataFrame(
            rows[::-1][: int(found[1] or 9)], "version long, timestamp timestamp"
        )


class _Reader:
    def __init__(self, lake: Lake) -> None:
        self.lake = lake
        self.options: dict[str, Any] = {}

    def option(self, key: str, value: Any) -> _Reader:
        self.options[key] = value
        return self

    def table(self, name: str) -> Any:
        if set(self.options) == {"versionAsOf"}:
            return self.lake.table(name)
        return name, self.options


@pytest.fixture
def lake(spark: SparkSession) -> Any:
    return Lake(spark)


def test_a_table_is_read_at_its_version(lake: Any) -> None:
    stamps = [pin_delta(lake, "topics", version).stamp for version in (None, 4, 2)]
    assert stamps[0] == stamps[1]
    assert stamps[0].startswith("delta id-1 4 4000 ")
    assert stamps[2].startswith("delta id-1 2 2000 ")
    assert pin_delta(lake, "topics", None).rows.columns == ["name"]
    last: Any = pin_delta(lake, "topics", None)
    assert last.changed_rows(stamps[2]) == (
        "topics",
        {"readChangeFeed": "true", "startingVersion": 3, "endingVersion": 4},
    )
    with pytest.raises(NothingToKeep, match="does not reach back to version 9"):
        pin_delta(lake, "topics", 9)


def test_changes_that_are_not_known(lake: Any) -> None:
    since = pin_delta(lake, "topics", 2).stamp

    def refused(reason: str, since: str = since, version: int | None = None) -> None:
        with pytest.raises(NothingToKeep, match=reason):
            present(pin_delta(lake, "topics", version).changed_rows)(since)

    refused("another table", "iceberg 20 1")
    refused("of version 2, and this is 1", version=1)
    lake.settings = {"spark.sql.files.ignoreMissingFiles": "true"}
    refused("changes may be left out")
    lake.settings = {}
    lake.seconds[2] = 2.5  # a restored copy that was written to
    refused("version 2 of the table is forgotten, or was committed anew")
    lake.seconds[2] = 2
    pinned: Any = pin_delta(lake, "topics", None)
    lake.columns = "name string, domain string"
    with pytest.raises(NothingToKeep, match="columns"):
        pinned.changed_rows(since)  # the columns were changed after the version was chosen
    refused("columns")
    lake.id = "id-2"
    refused("another table")
