"""The questions to precompute, read from a file, a table or what a broker learned; checked, reduced and each once.

A source is rows of ``namespace``, ``mode`` (``PERSISTENT`` where it is left out), ``pattern`` (left out or null: all
topics) and ``properties`` (an object of strings). What a broker counted of them (``count``, ``error``, ``seconds``) may
stand there too and does not matter here. A pattern that no broker of ours runs (RE2 refuses it, it is too long, it is
no regular expression) is *refused*: it is reported with the reason, and consumers that ask it get their answer as ever.
A row that cannot be understood stops the batch, since what it meant would be missing.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from broker_core.errors import InvalidName, InvalidPattern
from broker_core.names import Mode, NamespaceName
from broker_core.patterns import MAX_LENGTH, compile_pattern
from broker_core_spark.batch.errors import InvalidPatterns
from broker_core_spark.batch.tasks import is_spark_error, spark_said
from broker_core_spark.format.question import Question

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["AskedQuestions", "RefusedPattern", "from_rows", "load_questions"]

#: More rows than this are no list of known patterns; the driver holds them all.
MAX_QUESTIONS: Final = 1_000_000
#: Bytes of one line, and of a whole file of TOML.
_MAX_LINE: Final = 1024 * 1024
_MAX_TOML: Final = 64 * 1024 * 1024
_KEYS: Final = ("namespace", "mode", "pattern", "properties")
_COUNTED: Final = frozenset({"count", "error", "seconds"})


@dataclass(frozen=True, slots=True)
class RefusedPattern:
    """A question that is not precomputed, and why."""

    namespace: str
    mode: str
    pattern: str
    properties: tuple[tuple[str, str], ...]
    reason: str


@dataclass(frozen=True, slots=True)
class AskedQuestions:
    """What a source asked for: the questions (sorted, each once), those refused, and how many rows there were.

    ``asked`` is how often they were asked in all, where the source says it (``count``; else once a row), and
    ``asked_refused`` how often those that are refused.
    """

    questions: tuple[Question, ...]
    refused: tuple[RefusedPattern, ...]
    rows: int
    asked: int = 0
    asked_refused: int = 0
    refused_rows: int = 0

    @property
    def duplicates(self) -> int:
        """Rows that asked what another row asks already."""
        return self.rows - self.refused_rows - len(self.questions)


def load_questions(
    source: str,
    *,
    spark: SparkSession | None = None,
    property_keys: Sequence[str] = (),
    max_length: int = MAX_LENGTH,
) -> AskedQuestions:
    """The questions of ``source``: a file of JSON lines, a ``.toml`` file, a Parquet file or ``table:NAME``.

    The two last are read through ``spark``. Raises :exc:`InvalidPatterns` where a row cannot be understood.
    """
    if source.startswith("table:") or source.partition("?")[0].rstrip("/").endswith(".parquet"):
        if spark is None:
            raise InvalidPatterns(f"{source}: a table of patterns is read by Spark, and there is no session")
        rows = _table_rows(spark, source)
    elif source.endswith(".toml"):
        rows = _toml_rows(Path(source))
    else:
        rows = _json_rows(Path(source))
    return from_rows(rows, property_keys=property_keys, max_length=max_length)


def from_rows(
    rows: Iterable[tuple[str, object]], *, property_keys: Sequence[str] = (), max_length: int = MAX_LENGTH
) -> AskedQuestions:
    """The questions of rows, each with the place that a message names (``patterns.jsonl, line 3``)."""
    questions: set[Question] = set()
    refused: dict[RefusedPattern, None] = {}
    number = asked = asked_refused = refused_rows = 0
    for place, row in rows:
        number += 1
        if number > MAX_QUESTIONS:
            raise InvalidPatterns(f"{place}: more than {MAX_QUESTIONS} questions")
        namespace, mode, pattern, properties = _understood(place, row)
        pairs = {key: properties[key] for key in property_keys if key in properties}
        reason = _refusal(pattern, max_length)
        times = _times(row)
        asked += times
        if reason is None:
            questions.add(Question.of(namespace, mode, pattern, pairs))
        else:
            refused_rows += 1
            asked_refused += times
            sorted_pairs = tuple(sorted(pairs.items()))
            refused[RefusedPattern(namespace, mode.name, pattern or "", sorted_pairs, reason)] = None
    every = tuple(sorted(questions, key=_by_line))
    return AskedQuestions(every, tuple(refused), number, asked, asked_refused, refused_rows)


def _times(row: object) -> int:
    """How often a question was asked, by the count of a learned one."""
    count = row.get("count") if isinstance(row, Mapping) else None
    return count if type(count) is int and count > 0 else 1


def _by_line(question: Question) -> bytes:
    return question.line


def _refusal(pattern: str | None, max_length: int) -> str | None:
    if pattern is None:
        return None
    try:
        return compile_pattern(pattern, max_length=max_length).reason
    except InvalidPattern as error:
        return str(error)


def _understood(place: str, row: object) -> tuple[str, Mode, str | None, Mapping[str, str]]:
    if not isinstance(row, Mapping):
        raise InvalidPatterns(f"{place}: expected an object with {', '.join(_KEYS)}")
    unknown = sorted(str(key) for key in row if key not in _KEYS and key not in _COUNTED)
    if unknown:
        raise InvalidPatterns(f"{place}: unknown key {unknown[0][:100]!r}: known are {', '.join(_KEYS)}")
    namespace, mode, pattern = row.get("namespace"), row.get("mode"), row.get("pattern")
    properties = row.get("properties")
    if not isinstance(namespace, str):
        raise InvalidPatterns(f"{place}: namespace must be a text such as 'public/default'")
    if not isinstance(mode, str | None):
        raise InvalidPatterns(f"{place}: mode must be PERSISTENT, NON_PERSISTENT or ALL")
    if not isinstance(pattern, str | None):
        raise InvalidPatterns(f"{place}: pattern must be a text or null")
    if properties is None:
        properties = {}
    if not isinstance(properties, Mapping) or not all(
        isinstance(key, str) and isinstance(value, str) for key, value in properties.items()
    ):
        raise InvalidPatterns(f"{place}: properties must be an object of texts")
    for what, text in (
        ("pattern", pattern or ""),
        *((f"property {key!r}", properties[key]) for key in properties),
    ):
        if not _is_unicode(text):
            raise InvalidPatterns(f"{place}: {what} is not valid Unicode (a lone surrogate)")
    try:
        return str(NamespaceName.parse(namespace)), Mode.parse(mode or "PERSISTENT"), pattern, properties
    except InvalidName as error:
        raise InvalidPatterns(f"{place}: {error}") from None


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _json_rows(path: Path) -> Iterator[tuple[str, object]]:
    try:
        with path.open("rb") as lines:
            number = 0
            while line := lines.readline(_MAX_LINE + 1):
                number += 1
                place = f"{path}, line {number}"
                if len(line) > _MAX_LINE:
                    raise InvalidPatterns(f"{place}: longer than {_MAX_LINE} bytes")
                if not line.strip():
                    continue
                try:
                    yield place, json.loads(line.decode())
                except (ValueError, RecursionError) as error:  # of invalid UTF-8 too
                    raise InvalidPatterns(f"{place}: not an object of JSON: {error}") from None
    except OSError as error:
        raise InvalidPatterns(f"Cannot read the patterns {path}: {error.strerror}") from error


def _toml_rows(path: Path) -> Iterator[tuple[str, object]]:
    """``[[patterns]]`` tables of the same keys."""
    try:
        if path.stat().st_size > _MAX_TOML:
            raise InvalidPatterns(f"{path}: larger than {_MAX_TOML} bytes: use JSON lines")
        loaded = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidPatterns(f"Cannot read the patterns {path}: {error.strerror}") from error
    except ValueError as error:  # the message of tomllib names the line
        raise InvalidPatterns(f"{path}: not TOML: {error}") from None
    rows = loaded.pop("patterns", [])
    if loaded or not isinstance(rows, list):
        wrong = next(iter(loaded), "patterns")
        raise InvalidPatterns(f"{path}: {wrong!r} is not expected: the file is [[patterns]] tables")
    for number, row in enumerate(rows, 1):
        yield f"{path}, [[patterns]] number {number}", row


def _table_rows(spark: SparkSession, source: str) -> Iterator[tuple[str, object]]:

    try:
        if source.startswith("table:"):
            frame = spark.table(source.removeprefix("table:"))
        else:
            frame = spark.read.parquet(source)
        wanted = [column for column in frame.columns if column in _KEYS]
        if "namespace" not in wanted:
            raise InvalidPatterns(f"{source}: the table has no column 'namespace'")
        table = frame.select(*wanted).limit(MAX_QUESTIONS + 1).toArrow()
    except Exception as error:
        if not is_spark_error(error):
            raise
        said = spark_said(error)
        raise InvalidPatterns(f"Cannot read the patterns {source}: {said}") from error
    for number, row in enumerate(table.to_pylist(), 1):
        yield f"{source}, row {number}", _from_table(row)


def _from_table(row: dict[str, Any]) -> dict[str, Any]:
    """Properties of a table are a map, a struct or a text of JSON."""
    properties = row.get("properties")
    if isinstance(properties, list):
        row["properties"] = dict(properties)
    elif isinstance(properties, str):
        try:
            row["properties"] = json.loads(properties)
        except ValueError:
            row["properties"] = properties  # refused with the row's place
    elif isinstance(properties, dict):
        row["properties"] = {key: value for key, value in properties.items() if value is not None}
    return row
