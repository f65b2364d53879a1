"""Loading the questions to precompute, from a file, a table or a broker's export.

A source has rows of ``namespace``, ``mode`` (default ``PERSISTENT``), ``pattern`` (null or absent: all topics) and
``properties`` (an object of strings). Further keys of an export (``count``, ``error``, ``seconds``, ``last_asked``) are
allowed, and in a table the columns of a build's own table of questions. Any other is an error: it may be a misspelt
``pattern``, without which a row means all topics. A row with ``last_asked`` is a *learned* question: it is built until
nobody asked it for a while, even if a later export does not have it.

A pattern that brokers do not evaluate, because RE2 refuses it or it is too long, is reported as *refused*. Consumers
that ask it get their answer as before. A row that is no question stops the batch: its question would be missing.
"""

from __future__ import annotations

import io
import itertools
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from broker_core.errors import InvalidPattern
from broker_core.names import Mode
from broker_core.quantities import counted
from broker_core_spark.batch.build_errors import InvalidCatalogue, InvalidPatterns
from broker_core_spark.batch.progress.progress import SparkJob
from broker_core_spark.batch.questions.parse_question_row import (
    ROW_KEYS,
    check_keys,
    parse_json_line,
    parse_last_time,
    parse_question_row,
    refusal_reason,
)
from broker_core_spark.batch.source_address import (
    FRAME,
    frame_of,
    is_in_bucket,
    is_table,
    is_table_name,
    path_of,
    table_now,
)
from broker_core_spark.batch.source_redaction import redacted_source
from broker_core_spark.batch.spark.run_on_partitions import run_on_partitions
from broker_core_spark.batch.spark.spark_errors import failing_to_read
from broker_core_spark.format import CanonicalQuestion
from broker_core_spark.store import addressed_file

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = [
    "LoadedQuestions",
    "RefusedPattern",
    "check_patterns",
    "check_rows",
    "load_questions",
    "questions_of_rows",
    "refused_patterns",
]

#: More rows than this are no list of known patterns. The driver holds all of them.
MAX_QUESTIONS: Final = 1_000_000
#: Bytes of the largest file: it is read whole.
_MAX_FILE: Final = 1024 * 1024 * 1024
#: Patterns from which on tasks are worth their start: each takes a quarter of a millisecond.
_MANY: Final = 20_000
#: Columns of a table that are read.
_COLUMNS: Final = frozenset({*ROW_KEYS, "count", "last_asked"})
#: Further columns of the table of questions that a build exports.
_EXPORTED: Final = ("hash", "version", "generation", "number", "published")
#: Bytes of the largest TOML file.
_MAX_TOML: Final = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class RefusedPattern:
    """A question that is not precomputed, and why."""

    namespace: str
    mode: str
    pattern: str
    properties: tuple[tuple[str, str], ...]
    reason: str


@dataclass(frozen=True, slots=True)
class LoadedQuestions:
    """The questions of a source (sorted, each once), the refused ones, and the number of rows.

    ``total_times`` adds up the ``count`` of the rows (1 without a count), ``times`` has it for each question,
    ``refused_times`` for each refused one that an earlier build may have precomputed. ``duplicates`` are the rows with
    the question of another row. ``learned`` has the last time of each learned question. ``kept`` of them come from an
    earlier build alone. ``forgotten`` rows were asked too long ago. ``ignored`` has the rows with each property that
    selects nothing.
    """

    questions: tuple[CanonicalQuestion, ...]
    refused: tuple[RefusedPattern, ...]
    rows: int
    total_times: int = 0
    duplicates: int = 0
    times: Mapping[CanonicalQuestion, int] = field(default_factory=dict)
    learned: Mapping[CanonicalQuestion, datetime] = field(default_factory=dict)
    kept: int = 0
    forgotten: int = 0
    property_keys: tuple[str, ...] = ()
    refused_times: Mapping[CanonicalQuestion, int] = field(default_factory=dict)
    ignored: Mapping[str, int] = field(default_factory=dict)


def load_questions(
    source: str | DataFrame,
    *,
    spark: SparkSession | None = None,
    property_keys: Sequence[str] | None = (),
    max_length: int | None = None,
    store_options: Mapping[str, str] | None = None,
    always: str | DataFrame | None = None,
    kept: Iterable[tuple[str, object]] = (),
    oldest: datetime | None = None,
    strict: bool = False,
) -> LoadedQuestions:
    """The questions of ``source``: JSON lines, ``.toml`` or ``.parquet`` (a path, ``file://``, ``s3://``, ``gs://`` or
    ``az://``), ``table:NAME``, or the rows of a DataFrame.

    ``spark`` reads tables, and Parquet that is in no bucket. ``store_options`` are for the bucket. ``always`` is one
    more source. The others are as for :func:`questions_of_rows`. Raises :exc:`InvalidPatterns` for a row that is no
    question, and :exc:`~broker_core_spark.errors.StoreFailed` for a bucket that cannot be read.
    """
    return questions_of_rows(
        itertools.chain.from_iterable(
            _source_rows(one, spark, store_options)
            for one in ([source] if always is None else [source, always])
        ),
        property_keys=property_keys,
        max_length=max_length,
        kept=kept,
        oldest=oldest,
        strict=strict,
        spark=spark,
    )


def _source_rows(
    source: str | DataFrame, spark: SparkSession | None, store_options: Mapping[str, str] | None
) -> Iterator[tuple[str, object]]:
    if isinstance(source, str) and _is_file(source):
        return _file_rows(source, store_options)
    return _frame_rows(source, spark)


def check_patterns(source: str, store_options: Mapping[str, str] | None = None) -> None:
    """Raise unless there is such a file. Tables are not checked.

    Raises :exc:`InvalidPatterns` and :exc:`~broker_core_spark.errors.StoreFailed`.
    """
    if _is_file(source):
        addressed_file(_address(source), store_options).check_readable()


def check_rows(
    sources: Iterable[str],
    *,
    property_keys: Sequence[str] | None,
    store_options: Mapping[str, str] | None = None,
    strict: bool = False,
) -> None:
    """Raise what :func:`load_questions` raises for rows of files, before there is a session of Spark.

    Pipes and devices are left for :func:`load_questions`, since they can be read once.
    Patterns are not compiled: a refused one does not end a build.
    """
    found = _FoundQuestions(property_keys, None, strict=strict)
    for source in sources:
        if _is_file(source) and not addressed_file(_address(source), store_options).read_once:
            for place, row in _source_rows(source, None, store_options):
                found.add(place, row)
    found.check_properties()


def _is_file(source: str) -> bool:
    """Whether a source is read without Spark."""
    return is_in_bucket(source) or not is_table(source)


def _address(source: str) -> str:
    """The address of a file as it is opened, and named in errors."""
    try:
        return source if is_in_bucket(source) else str(path_of(source))
    except InvalidCatalogue:
        raise InvalidPatterns(
            f"No patterns of the kind {source.partition('://')[0]!r}: use a path, table:NAME, or a .parquet file"
        ) from None


def questions_of_rows(
    rows: Iterable[tuple[str, object]],
    *,
    property_keys: Sequence[str] | None = (),
    max_length: int | None = None,
    kept: Iterable[tuple[str, object]] = (),
    oldest: datetime | None = None,
    strict: bool = False,
    spark: SparkSession | None = None,
) -> LoadedQuestions:
    """The questions of rows. Each row has the place that messages name (``patterns.jsonl, line 3``).

    ``property_keys`` are the keys that select; with ``None`` a row with properties is an error that says what to pass.
    ``kept`` are the rows of learned questions of an earlier build. Learned questions that were asked before ``oldest``
    are left out. With ``strict`` a property that selects nothing is an error. Tasks of ``spark`` compile many patterns.
    """
    found = _FoundQuestions(property_keys, oldest, strict=strict)
    for place, row in rows:
        found.add(place, row)
    for place, row in kept:
        found.keep(place, row)
    found.check_properties()
    return found.loaded(refused_patterns(found.patterns, max_length, spark))


def refused_patterns(
    patterns: Sequence[str], max_length: int | None, spark: SparkSession | None = None, many: int = _MANY
) -> dict[str, str]:
    """The reason of each pattern that brokers refuse. With ``spark``, tasks look at ``many`` or more."""
    table = pa.table({"pattern": pa.array(patterns, pa.string())})
    work = partial(_refused, max_length)
    if spark is None or len(patterns) < many:
        found = list(work(table.to_batches()))
    else:
        found = run_on_partitions(
            spark.createDataFrame(table), work, SparkJob("check the patterns", {"patterns": len(patterns)})
        )
    return {pattern: reason for reasons in found for pattern, reason in reasons.items()}


def _refused(max_length: int | None, batches: Iterable[pa.RecordBatch]) -> Iterator[dict[str, str]]:
    """The refused patterns of each batch. The work of a task, pickled by reference into the executors."""
    for batch in batches:
        yield {
            pattern: reason
            for pattern in batch.column(0).to_pylist()
            if (reason := refusal_reason(pattern, max_length)) is not None
        }


#: Namespace, mode, raw pattern and selecting properties of rows.
_RawQuestion = tuple[str, Mode, str | None, tuple[tuple[str, str], ...]]


class _FoundQuestions:
    """Collects the questions of rows. Their patterns are compiled at the end, each once."""

    def __init__(
        self, property_keys: Sequence[str] | None, oldest: datetime | None, *, strict: bool = False
    ) -> None:
        self._keys = property_keys
        self._strict = strict
        self._oldest = oldest or datetime.min.replace(tzinfo=UTC)
        # By question: the number of rows (0 if only an earlier build has it), how often it was asked, and the last time
        # if known.
        self._found: dict[_RawQuestion, tuple[int, int, datetime | None]] = {}
        self._rows = self._forgotten = 0
        # Rows with each property that selects nothing, the number of these rows, the first one's place.
        self._ignored: Counter[str] = Counter()
        self._ignoring_rows = 0
        self._ignoring_place = ""

    @property
    def patterns(self) -> list[str]:
        """The raw patterns, each once."""
        return list(dict.fromkeys(question[2] for question in self._found if question[2] is not None))

    def add(self, place: str, row: object) -> None:
        """Add one row of a source."""
        self._rows += 1
        if self._rows > MAX_QUESTIONS:
            raise InvalidPatterns(f"{place}: more than {MAX_QUESTIONS} questions")
        question, last = self._parsed(place, row, ignores=True)
        if last is not None and last < self._oldest:
            self._forgotten += 1
            return
        rows, times, before = self._found.get(question, (0, 0, None))
        newest = max((when for when in (last, before) if when is not None), default=None)
        self._found[question] = rows + 1, times + _times(row), newest

    def keep(self, place: str, row: object) -> None:
        """Add one learned question of an earlier build, after all rows of sources.

        A pattern that is refused by now is no question any more.
        """
        question, last = self._parsed(place, row, ignores=self._keys is None)
        if last is not None and last >= self._oldest:
            rows, times, before = self._found.get(question, (0, _times(row), None))
            self._found[question] = rows, times, last if before is None else max(last, before)

    def check_properties(self) -> None:
        """Raise :exc:`InvalidPatterns` if nothing says which properties select; in ``strict`` for others too."""
        keys = ",".join(sorted(self._ignored))[:500]
        what = f"{self._ignoring_place}: {counted(self._ignoring_rows, 'question')} with properties"
        if self._ignored and self._keys is None:
            raise InvalidPatterns(
                f"{what} ({keys}), and nothing says which "
                f"of them select topics: pass --property-key {keys}, only those that select; or --config with the "
                "catalog.property_keys of the brokers; or --property-key '' if none selects (property_keys in Python)"
            )
        if self._ignored and self._strict:
            raise InvalidPatterns(
                f"{what} that select nothing ({keys}): those that do are {', '.join(self._keys or ()) or 'none'}"
            )

    def loaded(self, reasons: Mapping[str, str]) -> LoadedQuestions:
        """All loaded questions. ``reasons`` are by refused pattern."""
        times: Counter[CanonicalQuestion] = Counter()
        learned: dict[CanonicalQuestion, datetime] = {}
        refused: dict[RefusedPattern, None] = {}
        refused_times: Counter[CanonicalQuestion] = Counter()
        times_refused = refused_rows = kept = 0
        for (namespace, mode, pattern, pairs), (rows, count, last) in self._found.items():
            reason = None if pattern is None else reasons.get(pattern)
            try:
                question = CanonicalQuestion.of(namespace, mode, pattern, dict(pairs))
            except InvalidPattern:  # it is refused, and no build could have it
                question = None
            if question is None or reason is not None:
                refused[RefusedPattern(namespace, mode.name, pattern or "", pairs, reason or "")] = None
                refused_rows += rows
                times_refused += count
                if question is not None:
                    refused_times[question] += count
                continue
            if rows:
                times[question] += count
            elif question not in times:
                if len(times) >= MAX_QUESTIONS:
                    continue
                times[question] = count
                kept += 1
            if last is not None:
                learned[question] = max(last, learned.get(question, last))
        return LoadedQuestions(
            tuple(sorted(times, key=attrgetter("line"))),
            tuple(refused),
            self._rows,
            sum(times.values()) + times_refused,
            self._rows - refused_rows - self._forgotten - (len(times) - kept),
            times,
            learned,
            kept,
            self._forgotten,
            tuple(self._keys or ()),
            refused_times,
            self._ignored,
        )

    def _parsed(self, place: str, row: object, *, ignores: bool) -> tuple[_RawQuestion, datetime | None]:
        """The question of a row and its last time. With ``ignores`` properties that select nothing are noted."""
        namespace, mode, pattern, properties = parse_question_row(place, row)
        keys = set(self._keys or ())
        ignored = [key for key in properties if key not in keys] if ignores else []
        if ignored:
            self._ignoring_rows += 1
            self._ignoring_place = self._ignoring_place or place
            self._ignored.update(ignored)
        pairs = tuple(sorted((key, properties[key]) for key in keys & properties.keys()))
        return (namespace, mode, pattern, pairs), parse_last_time(place, row)


def _times(row: object) -> int:
    """The number of times that a question was asked: the ``count`` of an exported row, else 1."""
    count = row.get("count") if isinstance(row, Mapping) else None
    # Spark's sum() of a decimal or a double is one too.
    return int(count) if isinstance(count, int | float | Decimal) and 1 <= count < 2**63 else 1


def _file_rows(source: str, options: Mapping[str, str] | None) -> Iterator[tuple[str, object]]:
    place = _address(source)
    data = addressed_file(place, options).read(_MAX_FILE)
    if place.endswith(".parquet"):
        import pyarrow.parquet as pq

        try:
            table = pq.read_table(pa.BufferReader(data))
        except (pa.ArrowException, OSError) as error:
            raise InvalidPatterns(f"{source}: not Parquet: {error}") from None
        return _rows_of_table(table, source)
    return (_toml_rows if place.endswith(".toml") else _json_rows)(place, data)


def _json_rows(place: str, data: bytes) -> Iterator[tuple[str, object]]:
    for number, line in enumerate(io.BytesIO(data), 1):
        if line.strip():
            yield f"{place}, line {number}", parse_json_line(f"{place}, line {number}", line)


def _toml_rows(place: str, text: bytes) -> Iterator[tuple[str, object]]:
    """The rows of ``[[patterns]]`` tables."""
    if len(text) > _MAX_TOML:
        raise InvalidPatterns(f"{place}: larger than {_MAX_TOML} bytes: use JSON lines")
    try:
        loaded = tomllib.loads(text.decode())
    except (ValueError, RecursionError) as error:  # tomllib's message names the line
        raise InvalidPatterns(f"{place}: not TOML: {error}") from None
    rows = loaded.pop("patterns", [])
    if loaded or not isinstance(rows, list):
        raise InvalidPatterns(
            f"{place}: {next(iter(loaded), 'patterns')!r} is not expected: the file is [[patterns]] tables"
        )
    for number, row in enumerate(rows, 1):
        yield f"{place}, [[patterns]] number {number}", row


def _frame_rows(source: str | DataFrame, spark: SparkSession | None) -> Iterator[tuple[str, object]]:
    address = source if isinstance(source, str) else FRAME
    shown = redacted_source(address)
    with failing_to_read("patterns", address, InvalidPatterns):
        if not isinstance(source, str):
            frame = frame_of("patterns", source, InvalidPatterns)
        elif spark is None:
            raise InvalidPatterns(f"{shown}: a table of patterns is read by Spark, and there is no session")
        elif is_table_name(source):
            frame = table_now(spark, source.removeprefix("table:"))
        else:
            frame = spark.read.parquet(source)
        table = frame.select(*_question_columns(frame.columns, shown)).limit(MAX_QUESTIONS + 1).toArrow()
    yield from _rows_of_table(table, shown)


def _question_columns(columns: Sequence[str], shown: str) -> list[str]:
    if "namespace" not in columns:
        raise InvalidPatterns(f"{shown}: the table has no column 'namespace'")
    check_keys(shown, columns, "column", _EXPORTED)
    return [column for column in columns if column in _COLUMNS]


def _rows_of_table(table: pa.Table, shown: str) -> Iterator[tuple[str, object]]:
    number = 0
    for batch in table.select(_question_columns(table.column_names, shown)).to_batches():
        try:
            rows = batch.to_pylist()
        except Exception:  # Spark passes invalid UTF-8 on in a column of texts, and times of any year
            _check_values(batch, shown, number)
            raise
        for row in rows:
            number += 1
            place = f"{shown}, row {number}"
            yield place, _from_table(place, row)


def _check_values(batch: pa.RecordBatch, shown: str, before: int) -> None:
    """Raise for the first value that Python cannot read. It is slow: for wrong batches alone."""
    for number, values in enumerate(zip(*batch.columns, strict=True), before + 1):
        for column, value in zip(batch.schema.names, values, strict=True):
            try:
                value.as_py()
            except UnicodeDecodeError:
                raise InvalidPatterns(f"{shown}, row {number}: {column} is no text in UTF-8") from None
            except (ValueError, LookupError, ArithmeticError) as error:  # of a time in a zone or year unknown
                raise InvalidPatterns(f"{shown}, row {number}: {column}: {error!s:.200}") from None


def _from_table(place: str, row: dict[str, Any]) -> dict[str, Any]:
    """A row with its properties, a map, a struct or a JSON text, as an object."""
    properties = row.get("properties")
    if isinstance(properties, list) and all(
        isinstance(pair, tuple) for pair in properties
    ):  # a map of Arrow's
        row["properties"] = dict(properties)
    elif isinstance(properties, str):
        row["properties"] = parse_json_line(f"{place}, properties", properties.encode())
    elif isinstance(properties, dict):
        row["properties"] = {key: value for key, value in properties.items() if value is not None}
    return row  # another list is refused with the row's place
