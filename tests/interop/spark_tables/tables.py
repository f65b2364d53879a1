"""Tables of topics in Iceberg and in Delta: what is written to them, and their versions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, ClassVar

from tests.support.catalogue_chains import Name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["DeltaTable", "IcebergTable", "Row", "TopicTable"]

#: A row: namespace, domain (``None``: persistent), local name, properties.
Row = tuple[str, str | None, str, Mapping[str, str] | None]
_COLUMNS = "namespace string, domain string, name string, properties map<string, string>"


class TopicTable:
    """A table of one format. ``name`` is its name in a session."""

    format: ClassVar[str]

    def __init__(self, spark: SparkSession, name: str) -> None:
        self.spark = spark
        self.name = name
        self.source = f"table:{name}"
        self.create()

    def create(self, **properties: str) -> None:
        """Create the table anew, with properties of its format."""
        self.spark.sql(f"DROP TABLE IF EXISTS {self.name}")
        given = ", ".join(f"'{key}' = '{value}'" for key, value in (self.defaults() | properties).items())
        options = f"TBLPROPERTIES ({given})" if given else ""
        self.spark.sql(f"CREATE TABLE {self.name} ({_COLUMNS}) USING {self.format} {options}")

    def defaults(self) -> dict[str, str]:
        """The properties of a table that knows its changes."""
        return {}

    def add(self, rows: Iterable[Row]) -> None:
        """Insert rows."""
        self._frame(rows).writeTo(self.name).append()

    def remove(self, rows: Iterable[Row]) -> None:
        """Delete the rows with these names."""
        self._merge(rows, "WHEN MATCHED THEN DELETE")

    def put(self, rows: Iterable[Row]) -> None:
        """Insert rows, or replace the properties of those with these names."""
        self._merge(
            rows, "WHEN MATCHED THEN UPDATE SET t.properties = s.properties WHEN NOT MATCHED THEN INSERT *"
        )

    def rename(self, row: Row, local: str) -> None:
        """Change a name."""
        namespace, _, name, _ = row
        self.spark.sql(
            f"UPDATE {self.name} SET name = '{local}' WHERE namespace = '{namespace}' AND name = '{name}'"
        )

    def change(self, put: Mapping[Name, str | None], removed: Collection[Name]) -> None:
        """Remove rows, then insert or change others, which have this value of the property ``region``."""
        if removed:
            self.remove([(*name, None) for name in removed])
        self.put([(*name, None if region is None else {"region": region}) for name, region in put.items()])

    def rewrite(self) -> None:
        """Write the same rows to other files."""
        raise NotImplementedError

    def version(self) -> int:
        """The current version."""
        raise NotImplementedError

    def go_back(self, version: int) -> None:
        """Make an earlier version the current one."""
        raise NotImplementedError

    def _merge(self, rows: Iterable[Row], actions: str) -> None:
        self._frame(rows).createOrReplaceTempView("source")
        self.spark.sql(
            f"MERGE INTO {self.name} t USING source s ON t.namespace = s.namespace AND t.name = s.name"
            f" AND coalesce(t.domain, 'persistent') = coalesce(s.domain, 'persistent') {actions}"
        )

    def _frame(self, rows: Iterable[Row]) -> DataFrame:
        return self.spark.createDataFrame(list(rows), _COLUMNS).coalesce(1)


class IcebergTable(TopicTable):
    format = "iceberg"

    def __init__(self, spark: SparkSession, name: str) -> None:
        super().__init__(spark, f"lake.db.{name}")

    def rewrite(self) -> None:
        self._call("rewrite_data_files", "options => map('rewrite-all', 'true')")

    def version(self) -> int:
        (ref,) = self.spark.table(f"{self.name}.refs").where("name = 'main'").collect()
        return int(ref["snapshot_id"])

    def go_back(self, version: int) -> None:
        self._call("rollback_to_snapshot", f"snapshot_id => {version}")

    def expire(self) -> None:
        """Forget all snapshots but the current one."""
        self._call("expire_snapshots", "older_than => TIMESTAMP '2100-01-01 00:00:00', retain_last => 1")

    def _call(self, procedure: str, options: str) -> None:
        self.spark.sql(f"CALL lake.system.{procedure}(table => '{self.name}', {options})")


class DeltaTable(TopicTable):
    format = "delta"

    def defaults(self) -> dict[str, str]:
        return {"delta.enableChangeDataFeed": "true"}

    def rewrite(self) -> None:
        self.spark.sql(f"OPTIMIZE {self.name}")

    def version(self) -> int:
        (last,) = self.spark.sql(f"DESCRIBE HISTORY {self.name} LIMIT 1").collect()
        return int(last["version"])

    def go_back(self, version: int) -> None:
        self.spark.sql(f"RESTORE TABLE {self.name} TO VERSION AS OF {version}")
