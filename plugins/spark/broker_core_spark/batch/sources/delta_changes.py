"""A Delta table at a version, and the changes since another one by its change data feed.

A stamp has the table's id, the version, the time of its commit in milliseconds and a digest of its columns. A restored
copy of a table has the same id, and versions of the same numbers that were committed at another time.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from broker_core_spark.batch.build_errors import NothingToKeep
from broker_core_spark.batch.sources.pinned_table import PinnedTable, at_version

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["pin_delta"]

_KIND: Final = "delta"


def pin_delta(spark: SparkSession, name: str, version: int | None) -> PinnedTable:
    """The table at a version, by default at its last one. Raises :exc:`NothingToKeep` if its time is forgotten."""
    (detail,) = spark.sql(f"DESCRIBE DETAIL {name}").select("id").collect()
    commits = _commits(spark, name, 1 if version is None else None)
    latest = max(commits)
    at = latest if version is None else version
    if at not in commits:
        raise NothingToKeep(f"Delta's history does not reach back to version {at}")
    rows = at_version(spark, name, at)
    columns = _digest(rows)

    def changed_rows(since: str) -> DataFrame:
        kind, *parts = since.split(" ")
        if kind != _KIND or len(parts) != 4 or parts[0] != detail["id"]:
            raise NothingToKeep("the published generation is of another table")
        before = int(parts[1])
        if before >= at:
            raise NothingToKeep(f"the published generation is of version {before}, and this is {at}")
        # Each version is a file to read. Others commit meanwhile.
        if parts[2] != str(_commits(spark, name, latest - before + 100).get(before)):
            raise NothingToKeep(f"version {before} of the table is forgotten, or was committed anew")
        # The feed is read with the columns that the table has now.
        if not parts[3] == columns == _digest(spark.table(name)):
            raise NothingToKeep("the columns of the table were changed")
        # With these, Spark leaves out files of changes which it cannot read.
        for setting in ("spark.sql.files.ignoreMissingFiles", "spark.sql.files.ignoreCorruptFiles"):
            if spark.conf.get(setting, "false") == "true":
                raise NothingToKeep(f"{setting} is true, so changes may be left out")
        feed = spark.read.option("readChangeFeed", "true").option("startingVersion", before + 1)
        return feed.option("endingVersion", at).table(name)

    return PinnedTable(rows, f"{_KIND} {detail['id']} {at} {commits[at]} {columns}", changed_rows)


def _commits(spark: SparkSession, name: str, most: int | None) -> dict[int, int]:
    """The times in milliseconds at which the last versions were committed; ``None`` is for all that Delta knows."""
    from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

    history = spark.sql(f"DESCRIBE HISTORY {name}" + (f" LIMIT {most}" if most else ""))
    rows = history.select("version", F.unix_millis("timestamp").alias("committed")).collect()
    return {int(row["version"]): int(row["committed"]) for row in rows}


def _digest(frame: DataFrame) -> str:
    return hashlib.sha256(frame.schema.json().encode()).hexdigest()[:16]
