"""A Delta table at a version, and the changes since another one by its change data feed.

A stamp has the table's id, the version, the time of its commit in milliseconds and a digest of its columns. A restored
copy of a table has the same id, and versions of the same numbers that were committed at another time.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from broker_core_spark.batch.build_errors import NothingToKeep
from broker_core_spark.batch.sources.pinned_table import at_version

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["pin_delta"]

_KIND: Final = "delta"
#: Settings that make Spark leave out files of changes which it cannot read.
_LOSSY: Final = ("spark.sql.files.ignoreMissingFiles", "spark.sql.files.ignoreCorruptFiles")


@dataclass(frozen=True, slots=True)
class _DeltaTable:
    """``latest`` is a version that is not before ``version``."""

    spark: SparkSession
    name: str
    version: int
    latest: int
    stamp: str

    def frame(self) -> DataFrame:
        return at_version(self.spark, self.name, self.version)

    def changed_rows(self, since: str) -> DataFrame:
        kind, *parts = since.split(" ")
        _, table, _, _, columns = self.stamp.split(" ")
        if kind != _KIND or len(parts) != 4 or parts[0] != table:
            raise NothingToKeep("the published generation is of another table")
        version = int(parts[1])
        if version >= self.version:
            raise NothingToKeep(
                f"the published generation is of version {version}, and this is {self.version}"
            )
        # Each version is a file to read. Others commit meanwhile.
        commits = _commits(self.spark, self.name, self.latest - version + 100)
        if parts[2] != str(commits.get(version)):
            raise NothingToKeep(f"version {version} of the table is forgotten, or was committed anew")
        # The feed is read with the columns that the table has now.
        if not parts[3] == columns == _digest(self.spark.table(self.name)):
            raise NothingToKeep("the columns of the table were changed")
        for setting in _LOSSY:
            if self.spark.conf.get(setting, "false") == "true":
                raise NothingToKeep(f"{setting} is true, so changes may be left out")
        return (
            self.spark.read.option("readChangeFeed", "true")
            .option("startingVersion", version + 1)
            .option("endingVersion", self.version)
            .table(self.name)
        )


def pin_delta(spark: SparkSession, name: str, version: int | None) -> _DeltaTable:
    """The table at a version, by default at its last one. Raises :exc:`NothingToKeep` if its time is forgotten."""
    (detail,) = spark.sql(f"DESCRIBE DETAIL {name}").select("id").collect()
    commits = _commits(spark, name, 1 if version is None else None)
    latest = max(commits)
    version = latest if version is None else version
    if version not in commits:
        raise NothingToKeep(f"Delta's history does not reach back to version {version}")
    columns = _digest(at_version(spark, name, version))
    stamp = f"{_KIND} {detail['id']} {version} {commits[version]} {columns}"
    return _DeltaTable(spark, name, version, latest, stamp)


def _commits(spark: SparkSession, name: str, most: int | None) -> dict[int, int]:
    """The times in milliseconds at which the last versions were committed; ``None`` is for all that Delta knows."""
    from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

    history = spark.sql(f"DESCRIBE HISTORY {name}" + (f" LIMIT {most}" if most else ""))
    rows = history.select("version", F.unix_millis("timestamp").alias("committed")).collect()
    return {int(row["version"]): int(row["committed"]) for row in rows}


def _digest(frame: DataFrame) -> str:
    return hashlib.sha256(frame.schema.json().encode()).hexdigest()[:16]
