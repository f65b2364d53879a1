"""An Iceberg table at a snapshot, and the changes since another one by Iceberg's table ``changes``.

A stamp has the id of a snapshot, which is random and so no other table's, and the id of its schema.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from broker_core_spark.batch.build_errors import NothingToKeep
from broker_core_spark.batch.sources.pinned_table import at_version

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["pin_iceberg"]

_KIND: Final = "iceberg"


@dataclass(frozen=True, slots=True)
class _IcebergTable:
    """``schema`` is the id of the snapshot's schema, ``metadata_file`` has that of the table if it is newer."""

    spark: SparkSession
    name: str
    snapshot: int
    schema: int
    metadata_file: str | None

    @property
    def stamp(self) -> str:
        return f"{_KIND} {self.snapshot} {self.schema}"

    def frame(self) -> DataFrame:
        return at_version(self.spark, self.name, self.snapshot)

    def changed_rows(self, since: str) -> DataFrame:
        kind, *parts = since.split(" ")
        if kind != _KIND or len(parts) != 2:
            raise NothingToKeep("the published generation is of another table")
        snapshot, schema = parts
        # Changes are read with the columns that the table has now, whatever the snapshots had.
        if not int(schema) == self.schema == self.schema_now():
            raise NothingToKeep("the columns of the table were changed")
        # Iceberg refuses a snapshot that is no ancestor: expired, rolled back, or of another table.
        return (
            self.spark.read.option("start-snapshot-id", snapshot)
            .option("end-snapshot-id", str(self.snapshot))
            .table(f"{self.name}.changes")
        )

    def schema_now(self) -> int | None:
        """The id of the table's schema, ``None`` if it is not known."""
        from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

        if self.metadata_file is None:
            return self.schema
        text = self.spark.read.text(self.metadata_file, wholetext=True)
        row = text.select(F.get_json_object("value", "$.current-schema-id").alias("id")).first()
        return int(row["id"]) if row and row["id"] else None


def pin_iceberg(spark: SparkSession, name: str, snapshot: int | None) -> _IcebergTable:
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
    own = [at for at, entry in enumerate(log) if entry["latest_snapshot_id"] == snapshot]
    if not own:
        raise NothingToKeep(f"Iceberg's log of metadata does not reach back to snapshot {snapshot}")
    entry, last = log[own[0]], log[-1]
    later = last["file"] if last != entry else None
    table = _IcebergTable(spark, full, snapshot, int(entry["latest_schema_id"]), later)
    if current and table.schema != table.schema_now():
        # A change of columns makes no snapshot: the current one would be read with the columns from before.
        raise NothingToKeep("the columns of the table were changed after its last snapshot")
    return table


def _full_name(spark: SparkSession, name: str) -> str:
    """The name with catalogue and namespace, as the names of tables of metadata need it."""
    table = spark.catalog.getTable(name)
    parts = [table.catalog, *(table.namespace or ()), table.name]
    return ".".join("`{}`".format(part.replace("`", "``")) for part in parts if part)
