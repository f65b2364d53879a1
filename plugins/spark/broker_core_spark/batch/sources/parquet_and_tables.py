"""Topics of a table, through the session's own connectors: a Parquet file or folder, a table of any catalog.

Columns (others do not matter):

- ``name`` (or ``topic``): a full name ``persistent://tenant/namespace/local``; or a local name, where there is a column
  ``namespace`` or the job was given one.
- ``namespace``: ``tenant/namespace``, for local names.
- ``domain``: ``persistent`` or ``non-persistent``, for local names; persistent where it is left out or null.
- ``properties``: a map of texts, a struct of texts, or a text of JSON; null for none.

A row is one listed name: partitions are rows of their own. Repeated rows collapse; the same name with other values of
selecting properties is an error, since nothing says which of them holds.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker_core.catalog import CatalogError, check_properties
from broker_core.change_log import CatalogVersion
from broker_core.names import PERSISTENT, NamespaceName, TopicName
from broker_core_spark.arrow_columns import data_of, with_ends
from broker_core_spark.batch.errors import InvalidCatalogue
from broker_core_spark.batch.source_redaction import said_of, shown_source
from broker_core_spark.batch.sources.catalogue_source import STATIC_ID, Snapshot, Staging
from broker_core_spark.batch.spark.run_on_partitions import is_spark_error, run_tasks, spark_said
from broker_core_spark.batch.staging.sorted_runs import Run, RunWriter

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

__all__ = ["TableSource", "is_table", "stage_names"]

_NAME_COLUMNS: Final = ("name", "topic")
_JSON: Final = "json"
_TEXT: Final = pa.large_string()
_SLASH: Final = ord("/")
_SLASHES: Final = 4  # of a full name: domain://tenant/namespace/local
_Array = np.ndarray[Any, Any]


def is_table(source: str) -> bool:
    """Whether a source is read through the session's connectors."""
    return source.startswith("table:") or source.partition("?")[0].rstrip("/").endswith(".parquet")


class TableSource:
    """A table or a Parquet file as a catalogue; static, since nothing tells what happened to it afterwards."""

    static = True

    def __init__(self, source: str, spark: SparkSession, namespace: str | None = None) -> None:
        self._source = source
        self._spark = spark
        self._namespace = None if namespace is None else str(NamespaceName.parse(namespace))

    @contextmanager
    def snapshot(self) -> Iterator[Snapshot]:
        """The table as its connector reads it; it is read once."""

        try:
            if self._source.startswith("table:"):
                frame = self._spark.table(self._source.removeprefix("table:"))
            else:
                frame = self._spark.read.parquet(self._source)
            columns = frame.columns  # asks the connector
        except Exception as error:
            if not is_spark_error(error):
                raise
            shown = shown_source(self._source)
            said = said_of(self._source, spark_said(error))
            hidden = None if shown != self._source else error
            raise InvalidCatalogue(f"Cannot read the catalogue {shown}: {said}") from hidden
        yield _Table(shown_source(self._source), frame, columns, self._namespace)


class _Table:
    catalogue_id = STATIC_ID
    versions: Mapping[str, int] | None = None
    stamps: Mapping[str, str] = MappingProxyType({})
    repeats = 0  # what is repeated is staged, and counted where segments are made

    def __init__(self, source: str, frame: DataFrame, columns: list[str], namespace: str | None) -> None:
        self._source = source
        self._frame = frame
        self._columns = columns
        self._namespace = namespace

    def read(self, staging: Staging, _namespaces: Sequence[str] | None) -> list[Run]:
        work = _Ingest(staging, self._namespace, self._name_column)
        return [Run.parse(result) for result in run_tasks(self._selected(staging.property_keys), work)]

    def changed(self, _namespace: str, _since: CatalogVersion) -> Iterable[tuple[str, str]] | None:
        return None

    @property
    def _name_column(self) -> str:
        named = [column for column in _NAME_COLUMNS if column in self._columns]
        if not named:
            raise InvalidCatalogue(f"{self._source}: no column 'name' among {', '.join(self._columns)[:500]}")
        return named[0]

    def _selected(self, property_keys: Sequence[str]) -> DataFrame:
        """``name``, ``namespace``, ``domain`` and a column for each selecting property."""
        from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
        from pyspark.sql.types import MapType, StringType, StructType

        text = StringType()

        def optional(column: str) -> Column:
            return F.col(column).cast(text) if column in self._columns else F.lit(None).cast(text)

        wanted = [
            F.col(self._name_column).alias("name"),
            optional("namespace").alias("namespace"),
            optional("domain").alias("domain"),
        ]
        if property_keys:
            kind = self._frame.schema["properties"].dataType if "properties" in self._columns else None
            for number, key in enumerate(property_keys):
                if isinstance(kind, MapType):
                    value = F.element_at(F.col("properties"), F.lit(key)).cast(text)
                elif isinstance(kind, StructType):
                    has = key in kind.names
                    value = F.col("properties").getField(key).cast(text) if has else F.lit(None).cast(text)
                elif kind is None:
                    value = F.lit(None).cast(text)
                else:
                    break
                wanted.append(value.alias(f"p{number}"))
            else:
                return self._frame.select(*wanted)
            # A text of JSON: taken apart where it is staged.
            wanted.append(F.col("properties").cast(text).alias(_JSON))
        return self._frame.select(*wanted)


@dataclass(frozen=True, slots=True)
class _Ingest:
    """Stages the rows of one partition; pickled by reference into the executors."""

    staging: Staging
    namespace: str | None
    name_column: str = "name"

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[bytes]:
        writer = self.staging.writer()
        keys = self.staging.property_keys
        before = 0
        for batch in batches:
            columns = (self.name_column, "namespace", "domain", *("properties" for _ in batch.columns[3:]))
            name, namespace, domain, *values = (
                texts_of(column, title, before) for column, title in zip(batch.columns, columns, strict=True)
            )
            before += len(batch)
            if batch.schema.names[-1] == _JSON:
                values = values_of_texts(values[0], keys)
            for run in stage_names(writer, name, namespace, domain, values, self.namespace):
                yield run.to_bytes()
        for run in writer.finish():
            yield run.to_bytes()


def texts_of(column: pa.Array, title: str, before: int = 0) -> pa.LargeStringArray:
    """A column as texts. Spark hands on what is no UTF-8, as bytes and as a text alike.

    ``before`` rows of the same part of the table were there before. Raises :exc:`InvalidCatalogue`, which names the
    column, the row and what is there.
    """
    try:
        texts = column.cast(_TEXT)
        texts.validate(full=True)  # of a text the cast looks at nothing
    except pa.ArrowNotImplementedError:
        raise InvalidCatalogue(
            f"the column {title!r} is of the type {column.type!s:.100}: a text is expected"
        ) from None
    except pa.ArrowInvalid:
        for number, value in enumerate(column.cast(pa.large_binary()).to_pylist(), before + 1):
            if value is not None and not _is_utf8(value):
                raise InvalidCatalogue(
                    f"the column {title!r} has no text in UTF-8 in row {number} of a part of the table: {value[:100]!r}"
                ) from None
        raise
    return texts


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def stage_names(
    writer: RunWriter,
    names: pa.LargeStringArray,
    namespaces: pa.LargeStringArray,
    domains: pa.LargeStringArray,
    values: Sequence[pa.LargeStringArray],
    default_namespace: str | None = None,
) -> Iterator[Run]:
    """Give rows of a table to a writer, namespace by namespace. Raises :exc:`InvalidCatalogue` for what is no name."""
    if names.null_count:
        raise InvalidCatalogue("a row of the catalogue has no name (null)")
    has_slash = pc.match_substring(names, "/")
    if has_slash.true_count:
        full = np.flatnonzero(has_slash.to_numpy(zero_copy_only=False))
        index = pa.array(full)
        yield from _stage_full(
            writer, names.take(index), namespaces.take(index), [column.take(index) for column in values]
        )
    if has_slash.false_count:
        index = pa.array(np.flatnonzero(~has_slash.to_numpy(zero_copy_only=False)))
        names = names.take(index)
        places = namespaces.take(index)
        if default_namespace is not None:
            places = pc.fill_null(places, default_namespace)
        if places.null_count:
            shown = names[int(pc.index(places.is_null(), True).as_py())].as_py()
            raise InvalidCatalogue(
                f"{shown[:200]!r} is a local name without a namespace: give a column 'namespace', or --namespace"
            )
        places = with_ends(places, "", "/")
        prefixes = pc.binary_join_element_wise(
            pc.fill_null(domains.take(index), PERSISTENT), places, pa.scalar("://", _TEXT)
        )
        yield from _stage_by_prefix(writer, prefixes, names, [column.take(index) for column in values])


def _stage_full(
    writer: RunWriter,
    names: pa.LargeStringArray,
    namespaces: pa.LargeStringArray,
    values: Sequence[pa.LargeStringArray],
) -> Iterator[Run]:
    """Full names: everything up to the fourth slash is one value, of which there are few different ones."""
    data, offsets = data_of(names)
    first, last = int(offsets[0]), int(offsets[-1])
    slashes = np.flatnonzero(np.frombuffer(data, np.uint8)[first:last] == _SLASH) + first
    counts = np.bincount(np.searchsorted(offsets, slashes, side="right") - 1, minlength=len(names))
    if (counts != _SLASHES).any():
        shown = names[int(np.argmax(counts != _SLASHES))].as_py()
        raise InvalidCatalogue(_why_no_topic(shown))
    # The same memory as twice as many values, heads and local names by turns.
    edges = np.repeat(offsets, 2)[:-1]
    edges[1::2] = slashes.reshape(-1, _SLASHES)[:, -1] + 1
    halves = pa.LargeStringArray.from_buffers(len(edges) - 1, pa.py_buffer(edges), data)
    heads = halves.take(pa.array(np.arange(0, len(halves), 2)))
    if namespaces.null_count < len(namespaces):
        said = pc.binary_join_element_wise(namespaces, pa.scalar("", _TEXT), pa.scalar("/", _TEXT))
        agrees = pc.equal(pc.extract_regex(heads, "://(?P<place>.*)").field("place"), said)
        if pc.any(pc.invert(agrees)).as_py():
            at = int(pc.index(agrees, False).as_py())
            raise InvalidCatalogue(
                f"Topic {names[at].as_py()[:200]!r} is not in namespace {namespaces[at].as_py()[:200]}"
            )
    yield from _stage_by_prefix(writer, heads, halves.take(pa.array(np.arange(1, len(halves), 2))), values)


def _stage_by_prefix(
    writer: RunWriter,
    heads: pa.LargeStringArray,
    locals_: pa.LargeStringArray,
    values: Sequence[pa.LargeStringArray],
) -> Iterator[Run]:
    """Names with what stands in front of them (``domain://tenant/namespace/``), one head after the other."""
    encoded = heads.dictionary_encode()
    codes: _Array = encoded.indices.to_numpy()
    order = np.argsort(codes, kind="stable")
    bounds = np.searchsorted(codes[order], np.arange(len(encoded.dictionary) + 1))
    for code, head in enumerate(encoded.dictionary.to_pylist()):
        rows = order[bounds[code] : bounds[code + 1]]
        names = locals_.take(pa.array(rows))
        try:
            topic = TopicName.parse(f"{head}{names[0].as_py()}")
        except ValueError as error:
            raise InvalidCatalogue(str(error)) from None
        parts = [column.take(pa.array(rows)) for column in values]
        yield from writer.add(str(topic.namespace), topic.domain, names, parts)


def _why_no_topic(name: str) -> str:
    try:
        TopicName.parse(name)
    except ValueError as error:
        return str(error)
    return f"Invalid topic name {name[:200]!r}"


def values_of_texts(texts: pa.LargeStringArray, property_keys: Sequence[str]) -> list[pa.LargeStringArray]:
    """The value of each key in texts of JSON (null: no properties); the different texts are read once each."""
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
