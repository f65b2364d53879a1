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
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial, reduce
from operator import or_
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from broker_core.catalog import CatalogError, check_properties
from broker_core.change_log import CatalogVersion
from broker_core.names import NamespaceName
from broker_core_spark.arrow_columns import not_utf8
from broker_core_spark.batch.build_errors import InvalidCatalogue, NothingToKeep
from broker_core_spark.batch.progress.described_job import described_job
from broker_core_spark.batch.progress.progress import SparkJob
from broker_core_spark.batch.source_address import FRAME, frame_of, is_table_name, table_now
from broker_core_spark.batch.source_redaction import redacted_source
from broker_core_spark.batch.sources.catalogue_source import CatalogueSnapshot, CatalogueSource
from broker_core_spark.batch.sources.delta_changes import pin_delta
from broker_core_spark.batch.sources.iceberg_changes import pin_iceberg
from broker_core_spark.batch.sources.pinned_table import (
    CHANGE,
    PinnedTable,
    at_version,
    name_and_version,
    pin_column,
)
from broker_core_spark.batch.sources.stage_rows import rows_by_place, without_namespace
from broker_core_spark.batch.spark.run_on_partitions import run_on_partitions
from broker_core_spark.batch.spark.spark_errors import failing_to_read, spark_errors, spark_message
from broker_core_spark.batch.staging.sorted_runs import SortedRun, SortedRunWriter
from broker_core_spark.batch.staging.staging_area import StagingArea
from broker_core_spark.format import DOMAIN_ORDER
from broker_core_spark.store import ChangedName

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import DataType

__all__ = ["TableSnapshot", "TableSource", "changed_names", "in_namespaces"]

_JSON: Final = "json"
#: With more rows Spark brings the names into ranges: a task would read few names of each of very many sorted runs.
MANY_ROWS: Final = 200_000_000
#: More changed names are not collected: the table is read in full.
MOST_NAMES: Final = 1_000_000
#: Full names are compared with prefixes up to so many namespaces, which skips row groups of Parquet. With more they are
#: looked up in a set, row by row.
_PREFIXES: Final = 16
#: Names that a condition has; more are joined with the table.
_FEW_NAMES: Final = 1000
_PIN: Final[Mapping[str, Callable[[SparkSession, str, int | None], PinnedTable]]] = {
    "iceberg": pin_iceberg,
    "delta": pin_delta,
}
_TEXT: Final = pa.large_string()
#: Words of a condition that may choose other rows of one version: of time, chance, the session, other tables.
_MOVING: Final = re.compile(
    r"\b(?:now|curdate|curtime|localtimestamp|current_\w+|unix_timestamp|rand\w*|uniform|uuid|shuffle|session_user|user"
    r"|monotonically_increasing_id|spark_partition_id|input_file\w*|select)\b",
    re.IGNORECASE,
)


@dataclass
class TableSource(CatalogueSource):
    """A Parquet file, a table or a DataFrame, as a static catalogue: brokers cannot follow it.

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
            table = self._opened()
            _ = table.rows.columns  # the connector is asked here
            left_out = 0
            if self.where is not None:
                with described_job(self.spark, SparkJob("count the rows that are left out")):
                    left_out = table.rows.where(f"NOT coalesce(({self.where}), false)").count()
                table = replace(table, rows=table.rows.where(self.where))
        yield TableSnapshot(self, table, unversioned=table.unversioned, left_out=left_out)

    def _opened(self) -> PinnedTable:
        """The rows, at a version if the table has some."""
        if not isinstance(self.source, str):
            found = PinnedTable(
                frame_of("a catalogue", self.source, InvalidCatalogue),
                unversioned="a DataFrame has no versions",
            )
        elif not is_table_name(self.source):
            rows = self.spark.read.parquet(self.source)
            found = PinnedTable(rows, unversioned="a Parquet file has no versions", counted=rows)
        else:
            name, version = name_and_version(self.source.removeprefix("table:"))
            rows = table_now(self.spark, name) if version is None else at_version(self.spark, name, version)
            found = PinnedTable(rows) if self.versions is not None else self._pinned(rows, name, version)
        if self.versions is not None:
            return pin_column(found.rows, self.address, self.versions)
        moving = _MOVING.search(self.where or "")
        return replace(found, unversioned=f"its condition has {moving[0]!r:.100}") if moving else found

    def _pinned(self, rows: DataFrame, name: str, version: int | None) -> PinnedTable:
        """The table at a version, or its ``rows`` at none, with the reason."""
        try:
            described = self.spark.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()
            provider = next((row["data_type"] for row in described if row["col_name"] == "Provider"), "")
            if provider in _PIN:
                found = _PIN[provider](self.spark, name, version)
                return replace(found, counted=found.rows)
            unversioned = "only Iceberg and Delta tables have versions"
        except NothingToKeep as error:
            unversioned = str(error)
        except spark_errors() as error:
            unversioned = f"the version of the table is not known: {spark_message(error)}"
        return PinnedTable(rows, unversioned=unversioned)


@dataclass
class TableSnapshot(CatalogueSnapshot):
    """The rows of a table, at a version if it has some. Tasks that make segments count repeated rows."""

    _source: TableSource
    _table: PinnedTable

    @property
    def _made_by(self) -> str:
        # With another default namespace or condition, the same rows are other topics.
        return (self._source.namespace or "") + (
            ""
            if self._source.where is None
            else f"?{hashlib.sha256(self._source.where.encode()).hexdigest()[:16]}"
        )

    def read(self, staging: StagingArea) -> list[SortedRun]:
        with failing_to_read("catalogue", self._source.address, InvalidCatalogue):
            rows = self._selected(self._of(self._table.rows, staging.namespaces), staging.property_keys)
            if self._table.counted is not None and staging.key_ranges is None:
                with described_job(self._source.spark, SparkJob("count the rows")):
                    if self._table.counted.count() > MANY_ROWS:
                        rows = rows.repartitionByRange("namespace", "name")
        return run_on_partitions(
            rows,
            partial(_ingest, staging, self._source.namespace, self._name_column),
            SparkJob("read the catalogue"),
        )

    def version(self, _namespace: str) -> CatalogVersion | None:
        if self.unversioned:
            return None
        return CatalogVersion(self.catalogue_id, 0, f"{self._table.stamp} {self._made_by}")

    def changes(
        self, since: Mapping[str, CatalogVersion], property_keys: Sequence[str]
    ) -> Mapping[str, Iterable[tuple[str, str]] | None]:
        stamps = {version.stamp for version in since.values()}
        stamp, _, made_by = stamps.pop().rpartition(" ")
        if stamps or self._table.changed_rows is None:
            raise NothingToKeep("the published generation is of several versions of the table")
        if made_by != self._made_by:
            raise NothingToKeep("the published generation was built with another --namespace or --where")
        try:
            rows = self._of(self._table.changed_rows(stamp), since)
            if self._source.where is not None:
                rows = rows.where(self._source.where)
            found = changed_names(
                self._selected(rows, property_keys, CHANGE), self._source.namespace, self._name_column
            )
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
        try:
            rows = self._of(self._table.rows, {place for place, _, _ in names})
            name = F.col(self._name_column).cast("string")
            if len(written) <= _FEW_NAMES:  # which connectors look up in the statistics of files
                rows = rows.where(name.isin(*written))
            else:
                wanted = rows.sparkSession.createDataFrame(pa.table({"wanted": written}))
                rows = rows.join(F.broadcast(wanted), name == wanted["wanted"], "left_semi")
            with described_job(rows.sparkSession, SparkJob("read the changed names", {"names": len(names)})):
                table = self._selected(rows, property_keys).toArrow()
        except spark_errors() as error:
            raise InvalidCatalogue(f"the changed names cannot be read: {spark_message(error)}") from error
        found: dict[ChangedName, dict[str, str]] = {}
        for place, domain, locals_, values in _rows_of_batches(
            table.to_batches(), property_keys, self._name_column, self._source.namespace
        ):
            for local, *own in zip(*(column.to_pylist() for column in (locals_, *values)), strict=True):
                row = {key: text for key, text in zip(property_keys, own, strict=True) if text is not None}
                if found.setdefault((place, domain, local), row) != row:
                    raise InvalidCatalogue(
                        f"{domain}://{place}/{local} has two values of a property that selects"
                    )
        return {name: row for name, row in found.items() if name in names}

    @property
    def _name_column(self) -> str:
        """The column of names. Raises :exc:`InvalidCatalogue` without one, and if it or ``namespace`` has no texts."""
        columns = self._table.rows.columns
        found = next((column for column in ("name", "topic") if column in columns), None)
        if found is None:
            raise InvalidCatalogue(
                f"{redacted_source(self._source.address)}: no column 'name' among {', '.join(columns)[:500]}"
            )
        for column in (found, "namespace"):
            self._type_of(column, "texts are expected")
        return found

    def _type_of(self, column: str, expected: str, *others: type[DataType]) -> DataType | None:
        """The type of a column, ``None`` without it.

        Raises :exc:`InvalidCatalogue` if it neither has texts nor is of one of the ``others``; of a map the keys count.
        """
        from pyspark.sql.types import BinaryType, CharType, MapType, NullType, StringType, VarcharType

        kind = {field.name: field.dataType for field in self._table.rows.schema}.get(column)
        texts = kind.keyType if isinstance(kind, MapType) and MapType in others else kind
        if kind is not None and not isinstance(
            texts, (StringType, CharType, VarcharType, BinaryType, NullType, *others)
        ):
            raise InvalidCatalogue(
                f"{redacted_source(self._source.address)}: the column {column!r} is of the type "
                f"{kind.simpleString():.100}: {expected}"
            )
        return kind

    def _of(self, frame: DataFrame, namespaces: Collection[str] | None) -> DataFrame:
        """The rows of these namespaces. Raises :exc:`InvalidCatalogue` if none can be known to be in one."""
        if namespaces is None:
            return frame
        from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

        name = F.col(self._name_column)
        has_namespace = "namespace" in self._table.rows.columns
        if not has_namespace and self._source.namespace is None:
            rows = self._table.rows.select(name.cast("string").alias("name")).head(1)
            shown = rows[0]["name"] if rows else None
            if shown is not None and "/" not in shown:  # not one would be in a namespace
                raise InvalidCatalogue(
                    f"{without_namespace(shown)} (columns: {', '.join(self._table.rows.columns)[:500]})"
                )
        return frame.filter(
            in_namespaces(
                name,
                F.col("namespace") if has_namespace else None,
                sorted(namespaces),
                self._source.namespace,
            )
        )

    def _selected(self, frame: DataFrame, property_keys: Sequence[str], *more: str) -> DataFrame:
        """``name``, ``namespace``, ``domain``, ``more`` columns, and a column for each selecting property.

        Raises :exc:`InvalidCatalogue` for ``NAMESPACE`` and other columns in capitals that would be passed over.
        """
        from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
        from pyspark.sql.types import MapType, StructType

        columns = self._table.rows.columns
        needed = {"properties"} if property_keys else set[str]()
        if self._source.namespace is not None or "namespace" in columns:  # else all names are full
            needed |= {"namespace", "domain"}
        for column in columns:
            if column.lower() in needed.difference(columns):
                raise InvalidCatalogue(
                    f"{redacted_source(self._source.address)}: the column {column!r:.100} is not read: "
                    f"names of columns are case-sensitive, so it would have to be {column.lower()!r}"
                )
        wanted: list[Column | str] = [F.col(self._name_column).alias("name")]
        for column in ("namespace", "domain"):
            value = F.col(column) if column in columns else F.lit(None)
            wanted.append(value.cast("string").alias(column))
        wanted += more
        if not property_keys:
            return frame.select(*wanted)
        kind = self._type_of(
            "properties", "a map of texts, a struct or JSON texts are expected", MapType, StructType
        )
        if not isinstance(kind, MapType | StructType | None):
            # The JSON text is parsed when it is staged.
            return frame.select(*wanted, F.col("properties").cast("string").alias(_JSON))
        for number, key in enumerate(property_keys):
            has = isinstance(kind, MapType) or (isinstance(kind, StructType) and key in kind.names)
            wanted.append(
                (F.col("properties")[key] if has else F.lit(None)).cast("string").alias(f"p{number}")
            )
        return frame.select(*wanted)


def in_namespaces(
    name: Column, namespace: Column | None, namespaces: Sequence[str], default: str | None = None
) -> Column:
    """The condition for rows that are in one of the namespaces, or may be: reading such a row raises its error.

    ``namespace`` is the column for local names, ``default`` the namespace of local names without one. A full name has
    its own namespace. A name with neither is kept, because its namespace is unknown, and so is a row without a name.
    Connectors can push the condition down.
    """
    from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

    if len(namespaces) <= _PREFIXES:
        prefixes = [f"{domain}://{one}/" for one in namespaces for domain in DOMAIN_ORDER]
        without = reduce(or_, map(name.startswith, prefixes), name.isNull())
    else:
        place = F.substring_index(F.substring_index(name, "/", 4), "://", -1)
        without = place.isin(*namespaces) | name.isNull()
    # Full names without a namespace beside them, and local names of the default one.
    if default in namespaces or (default is None and namespace is not None):
        without = without | ~name.contains("/")
    if namespace is None:
        return without
    return namespace.isin(*namespaces) | (namespace.isNull() & without)


def changed_names(
    rows: DataFrame, default_namespace: str | None, name_column: str = "name"
) -> dict[str, set[tuple[str, str]]]:
    """Names (domain, local name) in rows that came or went, by namespace.

    ``rows`` has the columns that are staged, and ``_change_type``. A row that came as often as it went did not change:
    it was written to another file. Raises :exc:`NothingToKeep` for a row that is no topic, and for too many names.
    """
    from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

    columns = [column for column in rows.columns if column != CHANGE]
    came = F.lower(F.col(CHANGE)).isin("insert", "update_postimage", "update_after")
    changed = (
        rows.groupBy(*columns).agg(F.sum(F.when(came, 1).otherwise(-1)).alias("times")).where("times <> 0")
    )
    names = changed.select("name", "namespace", "domain").distinct().limit(MOST_NAMES + 1)
    with described_job(rows.sparkSession, SparkJob("read the changes of the table")):
        table = names.toArrow()
    if len(table) > MOST_NAMES:
        raise NothingToKeep(f"more than {MOST_NAMES:,} names changed")
    found: dict[str, set[tuple[str, str]]] = {}
    try:
        # Rows that a full build refuses are not accepted here.
        for place, kind, locals_, _ in _rows_of_batches(
            table.to_batches(), (), name_column, default_namespace
        ):
            found.setdefault(place, set()).update((kind, local) for local in locals_.to_pylist())
    except InvalidCatalogue as error:
        raise NothingToKeep(f"a changed row is no topic: {error}") from error
    return found


def _ingest(
    staging: StagingArea, default_namespace: str | None, name_column: str, batches: Iterator[pa.RecordBatch]
) -> Iterator[SortedRun]:
    """Stages the selected rows of a partition. Pickled by reference into the executors."""
    writer = SortedRunWriter(staging)
    for place in _rows_of_batches(
        batches, staging.property_keys, name_column, default_namespace, staging.namespaces
    ):
        writer.add(*place)
    yield from writer.finish()


def _rows_of_batches(
    batches: Iterable[pa.RecordBatch],
    property_keys: Sequence[str],
    name_column: str,
    default_namespace: str | None,
    wanted: Collection[str] | None = None,
) -> Iterator[tuple[str, str, pa.LargeStringArray, list[pa.LargeStringArray]]]:
    """The selected rows of batches, as of :func:`rows_by_place`."""
    before = 0
    for batch in batches:
        titles = (name_column, "namespace", "domain", *("properties" for _ in batch.columns[3:]))
        name, namespace, domain, *values = (
            texts_of(column, title, before) for column, title in zip(batch.columns, titles, strict=True)
        )
        if batch.schema.names[-1] == _JSON:
            values = values_of_texts(values[0], property_keys)
        before += len(batch)
        yield from rows_by_place(name, namespace, domain, values, default_namespace, wanted)


def texts_of(column: pa.Array, title: str, before: int = 0) -> pa.LargeStringArray:
    """A column as texts. Spark passes invalid UTF-8 on, in bytes and in texts.

    ``before`` is the number of earlier rows of the partition. Raises :exc:`InvalidCatalogue` with the column, the row
    and the value.
    """
    try:
        texts = column.cast(_TEXT)
        texts.validate(full=True)  # the cast does not validate texts
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
