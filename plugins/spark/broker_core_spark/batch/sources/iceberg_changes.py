"""An Iceberg table at a snapshot, and the changes since another one by Iceberg's table ``changes``.

A stamp has the id of a snapshot, which is random and so no other table's, and the id of its schema.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_core_spark.batch.build_errors import NothingToKeep
from broker_core_spark.batch.sources.pinned_table import PinnedTable, at_version

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["pin_iceberg"]

_KIND: Final = "iceberg"


def pin_iceberg(spark: SparkSession, name: str, snapshot: int | None) -> PinnedTable:
    """The table at a snapshot, by default at the one of its branch ``main``.

    Raises :exc:`NothingToKeep` without one, and if its columns are not the table's present ones.
    """
    full = _full_name(spark, name)
    current = snapshot is None
    if snapshot is None:
        refs = spark.table(f"{full}.refs").where("name = 'main'").select("snapshot_id").collect()
        if not refs:
            raise NothingToKeep("the Iceberg table has no snapshot yet")
        snapshot = int(refs[0]["snapshot_id"])
    # The log is in order of time. It has an entry for each change of the table, by default for the last 100.
    log = spark.table(f"{full}.metadata_log_entries").collect()
    entry = next((entry for entry in log if entry["latest_snapshot_id"] == snapshot), None)
    if entry is None:
        raise NothingToKeep(f"Iceberg's log of metadata does not reach back to snapshot {snapshot}")
    schema = int(entry["latest_schema_id"])

    def has_its_columns() -> bool:
        """Whether the table has the columns of the snapshot, as far as its last file of metadata is known."""
        return log[-1] == entry or _schema_in(spark, log[-1]["file"]) == schema

    def changed_rows(since: str) -> DataFrame:
        kind, *parts = since.split(" ")
        if kind != _KIND or len(parts) != 2:
            raise NothingToKeep("the published generation is of another table")
        # Changes are read with the columns that the table has now, whatever the snapshots had.
        if int(parts[1]) != schema or not has_its_columns():
            raise NothingToKeep("the columns of the table were changed")
        # Iceberg refuses a snapshot that is no ancestor: expired, rolled back, or of another table.
        return (
            spark.read.option("start-snapshot-id", parts[0])
            .option("end-snapshot-id", str(snapshot))
            .table(f"{full}.changes")
        )

    if current and not has_its_columns():
        # A change of columns makes no snapshot: the current one would be read with the columns from before.
        raise NothingToKeep("the columns of the table were changed after its last snapshot")
    return PinnedTable(at_version(spark, full, snapshot), f"{_KIND} {snapshot} {schema}", changed_rows)


def _schema_in(spark: SparkSession, metadata_file: str) -> int | None:
    """The id of the table's schema, ``None`` if it is not known."""
    from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

    row = (
        spark.read.text(metadata_file, wholetext=True)
        .select(F.get_json_object("value", "$.current-schema-id").alias("id"))
        .first()
    )
    return int(row["id"]) if row and row["id"] else None


def _full_name(spark: SparkSession, name: str) -> str:
    """The name with catalogue and namespace, as the names of tables of metadata need it."""
    table = spark.catalog.getTable(name)
    parts = [table.catalog, *(table.namespace or ()), table.name]
    return ".".join("`{}`".format(part.replace("`", "``")) for part in parts if part)
