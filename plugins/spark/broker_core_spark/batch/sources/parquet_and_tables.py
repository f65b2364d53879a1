"""A Parquet file, a table or a DataFrame as a catalogue, read through the session's connectors.

An Iceberg or Delta table is read at one version, whose stamp the generation keeps. The next incremental build asks the
table for the changes since that version.

These columns are read:

- ``name`` (or ``topic``): a full name ``persistent://tenant/namespace/local``; or a local name, if there is a column
  ``namespace`` or the job was given one.
- ``namespace``: ``tenant/namespace`` of local names.
- ``domain``: ``persistent`` (default) or ``non-persistent``, of local names.
- ``properties``: a map or struct of texts, or a JSON text; null for none.

A row is one listed name: partitions are rows of their own. Repeated rows count once. A name with two values of a
selecting property is an error, because nothing says which is right.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from broker_core.catalog import CatalogError, check_properties
from broker_core.change_log import CatalogVersion
from broker_core.names import NamespaceName
from broker_core_spark.arrow_columns import not_utf8
from broker_core_spark.batch.build_errors import InvalidCatalogue, NothingToKeep
from broker_core_spark.batch.progress.described_job import described_job
from broker_core_spark.batch.progress.progress import SparkJob
from broker_core_spark.batch.source_address import FRAME
from broker_core_spark.batch.source_redaction import redacted_source
from broker_core_spark.batch.sources.catalogue_source import CatalogueSnapshot, CatalogueSource
from broker_core_spark.batch.sources.delta_changes import pin_delta
from broker_core_spark.batch.sources.iceberg_changes import pin_iceberg
from broker_core_spark.batch.sources.pinned_table import PinnedTable, at_version, name_and_version
from broker_core_spark.batch.sources.rows_of_namespaces import in_namespaces
from broker_core_spark.batch.sources.stage_rows import rows_by_place, without_namespace
from broker_core_spark.batch.sources.table_changes import CHANGE, changed_names
from broker_core_spark.batch.sources.version_column import pin_column
from broker_core_spark.batch.spark.run_on_partitions import run_on_partitions
from broker_core_spark.batch.spark.spark_errors import failing_to_read, spark_errors, spark_message
from broker_core_spark.batch.staging.sorted_runs import SortedRun, SortedRunWriter
from broker_core_spark.batch.staging.staging_area import StagingArea
from broker_core_spark.store import ChangedName

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

__all__ = ["TableSnapshot", "TableSource"]

_NAME_COLUMNS: Final = ("name", "topic")
_JSON: Final = "json"
#: Names that a condition has; more are joined with the table.
_FEW_NAMES: Final = 1000
_PIN: Final[Mapping[str, Callable[[SparkSession, str, int | None], PinnedTable]]] = {
    "iceberg": pin_iceberg,
    "delta": pin_delta,
}
_TEXT: Final = pa.large_string()


@dataclass
class TableSource(CatalogueSource):
    """A static catalogue: brokers cannot follow a table.

    ``where`` is a condition for its rows, ``versions`` its column of versions.
    """

    source: str | DataFrame
    spark: SparkSession
    namespace: str | None = None
    where: str | None = None
    versions: str | None = None

    def __post_init__(self) -> None:
        if self.where is not None and self.versions is not None:
            raise InvalidCatalogue(
                "a row that a condition leaves out after a change is not known to have changed: with a column of "
                "versions its column 'deleted' says so, and there is no condition"
            )
        if self.namespace is not None:
            self.namespace = str(NamespaceName.parse(self.namespace))

    @property
    def address(self) -> str:
        return self.source if isinstance(self.source, str) else FRAME

    @contextmanager
    def snapshot(self) -> Iterator[TableSnapshot]:
        """The table as its connector reads it, once."""
        with failing_to_read("catalogue", self.address, InvalidCatalogue):
            frame, pinned, unversioned = self._opened()
            columns = frame.columns  # the connector is asked here
            left_out = 0
            if self.where is not None:
                with described_job(self.spark, SparkJob("count the rows that are left out")):
                    left_out = frame.where(f"NOT coalesce(({self.where}), false)").count()
                frame = frame.where(self.where)
        yield TableSnapshot(self, frame, columns, pinned, unversioned, left_out)

    def _opened(self) -> tuple[DataFrame, PinnedTable | None, str]:
        """The rows, the table at a version, and why it is at none."""
        table = self.address.removeprefix("table:")
        if self.versions is not None:
            if not isinstance(self.source, str):
                pinned = pin_column(self.source, self.versions)
            else:
                rows = self.spark.table(table) if table != self.source else self.spark.read.parquet(table)
                pinned = pin_column(rows, self.versions)
            return pinned.rows, pinned, ""
        if not isinstance(self.source, str):
            return self.source, None, "a DataFrame has no versions"
        if table == self.source:
            return self.spark.read.parquet(table), None, "a Parquet file has no versions"
        name, version = name_and_version(table)
        frame = self.spark.table(name)
        _ = frame.columns  # a table that is not there is an error of the source
        found = self._pinned(name, version)
        if isinstance(found, PinnedTable):
            return found.rows, found, ""
        return (frame if version is None else at_version(self.spark, name, version)), None, found

    def _pinned(self, name: str, version: int | None) -> PinnedTable | str:
        """The table at a version, or why it is at none: it can be read without."""
        try:
            rows = self.spark.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()
            provider = next((row["data_type"] for row in rows if row["col_name"] == "Provider"), "")
            if provider not in _PIN:
                return "only Iceberg and Delta tables have versions"
            return _PIN[provider](self.spark, name, version)
        except NothingToKeep as error:
            return str(error)
        except spark_errors() as error:
            return f"the version of the table is not known: {spark_message(error)}"


@dataclass
class TableSnapshot(CatalogueSnapshot):
    """The rows of a table, at a version if it has some. Tasks that make segments count repeated rows."""

    _source: TableSource
    _frame: DataFrame
    _columns: list[str]
    _pinned: PinnedTable | None
    unversioned: str
    left_out: int

    @property
    def _made_by(self) -> str:
        # With another default namespace or condition, the same rows are other topics.
        where = self._source.where
        condition = "" if where is None else f"?{hashlib.sha256(where.encode()).hexdigest()[:16]}"
        return (self._source.namespace or "") + condition

    def read(self, staging: StagingArea) -> list[SortedRun]:
        work = _Ingest(staging, self._source.namespace, self._name_column)
        rows = self._selected(self._of(self._frame, staging.namespaces), staging.property_keys)
        return run_on_partitions(rows, work, SparkJob("read the catalogue"))

    def version(self, _namespace: str) -> CatalogVersion | None:
        if self._pinned is None:
            return None
        return CatalogVersion(self.catalogue_id, 0, f"{self._pinned.stamp} {self._made_by}")

    def changes(
        self, since: Mapping[str, CatalogVersion], property_keys: Sequence[str]
    ) -> Mapping[str, Iterable[tuple[str, str]] | None]:
        stamps = {version.stamp for version in since.values()}
        stamp, _, made_by = stamps.pop().rpartition(" ")
        if stamps or self._pinned is None:
            raise NothingToKeep("the published generation is of several versions of the table")
        if made_by != self._made_by:
            raise NothingToKeep("the published generation was built with another --namespace or --where")
        try:
            rows = self._of(self._pinned.changed_rows(stamp), since)
            if self._source.where is not None:
                rows = rows.where(self._source.where)
            found = changed_names(self._selected(rows, property_keys, CHANGE), self._source.namespace)
        except spark_errors() as error:
            raise NothingToKeep(f"the changes of the table cannot be read: {spark_message(error)}") from error
        return {name: found.get(name, ()) for name in since}

    def states(
        self, names: Collection[ChangedName], property_keys: Sequence[str]
    ) -> dict[ChangedName, dict[str, str]]:
        """The selecting properties of the names that the table has. Raises :exc:`InvalidCatalogue`."""
        if not names:
            return {}
        from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

        written = sorted(
            {form for place, domain, local in names for form in (local, f"{domain}://{place}/{local}")}
        )
        rows = self._of(self._frame, {place for place, _, _ in names})
        name = F.col(self._name_column).cast("string")
        if len(written) <= _FEW_NAMES:  # which connectors look up in the statistics of files
            rows = rows.where(name.isin(*written))
        else:
            wanted = rows.sparkSession.createDataFrame(pa.table({"wanted": written}))
            rows = rows.join(F.broadcast(wanted), name == wanted["wanted"], "left_semi")
        try:
            with described_job(rows.sparkSession, SparkJob("read the changed names", {"names": len(names)})):
                table = self._selected(rows, property_keys).toArrow()
        except spark_errors() as error:
            raise InvalidCatalogue(f"the changed names cannot be read: {spark_message(error)}") from error
        found: dict[ChangedName, dict[str, str]] = {}
        for batch in table.to_batches():
            columns = _texts_of_rows(batch, property_keys, self._name_column)
            for place, domain, locals_, values in rows_by_place(*columns, self._source.namespace):
                for local, *own in zip(*(column.to_pylist() for column in (locals_, *values)), strict=True):
                    row = {
                        key: text for key, text in zip(property_keys, own, strict=True) if text is not None
                    }
                    if found.setdefault((place, domain, local), row) != row:
                        raise InvalidCatalogue(
                            f"{domain}://{place}/{local} has two values of a property that selects"
                        )
        return {name: row for name, row in found.items() if name in names}

    @property
    def _name_column(self) -> str:
        named = [column for column in _NAME_COLUMNS if column in self._columns]
        if not named:
            shown = redacted_source(self._source.address)
            raise InvalidCatalogue(f"{shown}: no column 'name' among {', '.join(self._columns)[:500]}")
        return named[0]

    def _of(self, frame: DataFrame, namespaces: Collection[str] | None) -> DataFrame:
        """The rows of these namespaces."""
        if namespaces is None:
            return frame
        from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

        name = F.col(self._name_column)
        has_namespace = "namespace" in self._columns
        if not has_namespace and self._source.namespace is None:
            self._check_full(name)
        return frame.filter(
            in_namespaces(
                name,
                F.col("namespace") if has_namespace else None,
                sorted(namespaces),
                self._source.namespace,
            )
        )

    def _check_full(self, name: Column) -> None:
        """Raise :exc:`InvalidCatalogue` if the names are local: not one would be in a namespace."""
        rows = self._frame.select(name.cast("string").alias("name")).head(1)
        shown = rows[0]["name"] if rows else None
        if shown is not None and "/" not in shown:
            raise InvalidCatalogue(without_namespace(shown))

    def _selected(self, frame: DataFrame, property_keys: Sequence[str], *more: str) -> DataFrame:
        """``name``, ``namespace``, ``domain``, ``more`` columns, and a column for each selecting property."""
        from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
        from pyspark.sql.types import MapType, StringType, StructType

        text = StringType()

        def optional(column: str) -> Column:
            return F.col(column).cast(text) if column in self._columns else F.lit(None).cast(text)

        wanted: list[Column | str] = [
            F.col(self._name_column).alias("name"),
            optional("namespace").alias("namespace"),
            optional("domain").alias("domain"),
            *more,
        ]
        kind = self._frame.schema["properties"].dataType if "properties" in self._columns else None
        properties = F.col("properties")
        if property_keys and not isinstance(kind, MapType | StructType | None):
            # The JSON text is parsed when it is staged.
            return frame.select(*wanted, properties.cast(text).alias(_JSON))
        for number, key in enumerate(property_keys):
            has = isinstance(kind, MapType) or (isinstance(kind, StructType) and key in kind.names)
            wanted.append((properties[key] if has else F.lit(None)).cast(text).alias(f"p{number}"))
        return frame.select(*wanted)


@dataclass(frozen=True, slots=True)
class _Ingest:
    """Stages the rows of a partition. Pickled by reference into the executors."""

    staging: StagingArea
    namespace: str | None
    name_column: str = "name"

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[SortedRun]:
        writer = SortedRunWriter(self.staging)
        before = 0
        for batch in batches:
            columns = _texts_of_rows(batch, self.staging.property_keys, self.name_column, before)
            before += len(batch)
            for place in rows_by_place(*columns, self.namespace, self.staging.namespaces):
                writer.add(*place)
        yield from writer.finish()


def _texts_of_rows(
    batch: pa.RecordBatch, property_keys: Sequence[str], name_column: str, before: int = 0
) -> tuple[pa.LargeStringArray, pa.LargeStringArray, pa.LargeStringArray, list[pa.LargeStringArray]]:
    """Names, namespaces, domains and the values of each key of selected rows, after ``before`` others."""
    columns = (name_column, "namespace", "domain", *("properties" for _ in batch.columns[3:]))
    name, namespace, domain, *values = (
        texts_of(column, title, before) for column, title in zip(batch.columns, columns, strict=True)
    )
    if batch.schema.names[-1] == _JSON:
        values = values_of_texts(values[0], property_keys)
    return name, namespace, domain, values


def texts_of(column: pa.Array, title: str, before: int = 0) -> pa.LargeStringArray:
    """A column as texts. Spark passes invalid UTF-8 on, in bytes and in texts.

    ``before`` is the number of earlier rows of the partition. Raises :exc:`InvalidCatalogue` with the column, the row
    and the value.
    """
    try:
        texts = column.cast(_TEXT)
        texts.validate(full=True)  # the cast does not validate texts
    except pa.ArrowNotImplementedError:
        raise InvalidCatalogue(
            f"the column {title!r} is of the type {column.type!s:.100}: a text is expected"
        ) from None
    except pa.ArrowInvalid:
        for row, value in not_utf8(column):
            raise InvalidCatalogue(
                f"the column {title!r} has no text in UTF-8 in row {before + row + 1} of a part of the table: "
                f"{value[:100]!r}"
            ) from None
        raise
    return texts


def values_of_texts(texts: pa.LargeStringArray, property_keys: Sequence[str]) -> list[pa.LargeStringArray]:
    """The value of each key in JSON texts (null: no properties). Each different text is parsed once."""
    encoded = texts.dictionary_encode()
    found: list[dict[str, str]] = []
    for text in encoded.dictionary.to_pylist():
        try:
            found.append(check_properties(json.loads(text)))
        except (ValueError, RecursionError, CatalogError) as error:
            raise InvalidCatalogue(f"Invalid properties {text[:200]!r} in the catalogue: {error}") from None
    return [
        pa.array([properties.get(key) for properties in found], _TEXT).take(encoded.indices)
        for key in property_keys
    ]
