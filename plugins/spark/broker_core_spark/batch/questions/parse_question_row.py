"""Parsing one row of a source of questions.

One set of rules holds for files, tables and a broker's export, so a batch reads any export.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from broker_core.errors import InvalidPattern
from broker_core.names import Mode, NamespaceName
from broker_core.patterns import compile_pattern
from broker_core_spark.batch.build_errors import InvalidPatterns

__all__ = [
    "COUNTED_KEYS",
    "MAX_LINE",
    "ROW_KEYS",
    "check_keys",
    "parse_json_line",
    "parse_last_time",
    "parse_question_row",
    "refusal_reason",
]

ROW_KEYS: Final = ("namespace", "mode", "pattern", "properties")
_KINDS: Final[Mapping[str, tuple[Any, str]]] = {
    "namespace": (str, "a text such as 'public/default'"),
    "mode": (str | None, "PERSISTENT, NON_PERSISTENT or ALL"),
    "pattern": (str | None, "a text or null"),
    "properties": (Mapping | None, "an object of texts"),
}
#: The keys of a broker's export besides the question.
COUNTED_KEYS: Final = ("count", "error", "seconds", "last_asked")
#: Bytes of the longest line.
MAX_LINE: Final = 1024 * 1024


def parse_json_line(place: str, line: bytes) -> object:
    """The value of a JSON line. Raises :exc:`InvalidPatterns` with its ``place``."""
    if len(line) > MAX_LINE:
        raise InvalidPatterns(f"{place}: longer than {MAX_LINE} bytes")
    try:
        return json.loads(line.rstrip(b"\r\n").decode(), object_pairs_hook=_keys_once)
    except (ValueError, RecursionError) as error:  # invalid UTF-8 is one too
        # JSON's own text would count lines in this one.
        said = f"{error.msg}: column {error.pos + 1}" if isinstance(error, json.JSONDecodeError) else error
        raise InvalidPatterns(f"{place}: not an object of JSON: {said}") from None


def _keys_once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is there twice")
    return found


def parse_question_row(place: str, row: object) -> tuple[str, Mode, str | None, Mapping[str, str]]:
    """(namespace, mode, raw pattern, all properties) of a row.

    Raises :exc:`InvalidPatterns` with its ``place`` for a row that is no question.
    """
    if not isinstance(row, Mapping):
        raise InvalidPatterns(f"{place}: expected an object with {', '.join(ROW_KEYS)}")
    check_keys(place, row)
    for key, (kind, wanted) in _KINDS.items():
        if not isinstance(row.get(key), kind):
            raise InvalidPatterns(f"{place}: {key} must be {wanted}")
    namespace, mode, pattern = row["namespace"], row.get("mode"), row.get("pattern")
    properties = row.get("properties") or {}
    texts = [*properties, *properties.values()]
    if not all(isinstance(text, str) for text in texts):
        raise InvalidPatterns(f"{place}: properties must be an object of texts")
    try:
        "".join((pattern or "", *texts)).encode()
    except UnicodeEncodeError:
        raise InvalidPatterns(
            f"{place}: the pattern or a property is not valid Unicode (a lone surrogate)"
        ) from None
    try:
        lists = Mode.PERSISTENT if mode is None else Mode.parse(mode[:100])
        return str(NamespaceName.parse(namespace)), lists, pattern, properties
    except ValueError as error:  # of a name
        raise InvalidPatterns(f"{place}: {error}") from None


def check_keys(place: str, keys: Iterable[object], what: str = "key", more: Iterable[str] = ()) -> None:
    """Raise :exc:`InvalidPatterns` with its ``place`` for a key that no row has, but for ``more``."""
    known = (*ROW_KEYS, *COUNTED_KEYS, *more)
    for key in keys:
        if key not in known:
            raise InvalidPatterns(f"{place}: unknown {what} {str(key)[:100]!r}: known are {', '.join(known)}")


def parse_last_time(place: str, row: object) -> datetime | None:
    """The last time of the question of a row, or ``None`` if unknown. A time without a zone is UTC.

    Raises :exc:`InvalidPatterns` with its ``place`` for a value that is no time.
    """
    value = row.get("last_asked") if isinstance(row, Mapping) else None
    if value is None:
        return None
    try:
        found = value if isinstance(value, datetime) else datetime.fromisoformat(value)
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (TypeError, ValueError, OverflowError):
        raise InvalidPatterns(
            f"{place}: last_asked must be a time such as '2026-03-01T10:15:00Z', not {value!r:.100}"
        ) from None


def refusal_reason(pattern: str | None, max_length: int | None) -> str | None:
    """The reason why brokers do not evaluate a pattern, or ``None`` if they do.

    ``max_length`` is the brokers' limit in UTF-16 code units, ``None`` for the default.
    """
    if pattern is None:
        return None
    try:
        if max_length is None:
            return compile_pattern(pattern).reason
        return compile_pattern(pattern, max_length=max_length).reason
    except InvalidPattern as error:
        return str(error)
