"""A row is a question, or an error with its place."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from broker_core.names import Mode
from broker_core_spark.batch.build_errors import InvalidPatterns
from broker_core_spark.batch.questions.parse_question_row import (
    MAX_LINE,
    parse_json_line,
    parse_last_time,
    parse_question_row,
    refusal_reason,
)


def test_what_is_left_out_has_a_default() -> None:
    assert parse_question_row("here", {"namespace": "a/b"}) == ("a/b", Mode.PERSISTENT, None, {})
    row = {"namespace": "a/b", "mode": "all", "pattern": "", "properties": {"k": "v"}, "count": 1}
    assert parse_question_row("here", row) == ("a/b", Mode.ALL, "", {"k": "v"})


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"mode": ""}, "Invalid mode ''"),
        ({"mode": "x" * 100_000}, "Invalid mode"),
        ({"properties": {"\ud800": "v"}}, "not valid Unicode"),
        ({"properties": {"k": "\ud800"}}, "not valid Unicode"),
        ({"properties": ["ab"]}, "properties must be"),
        ({"properties": [("a", "b")]}, "properties must be"),
        ({"properties": {1: "v"}}, "properties must be"),
        ({"namespace": "a/\ud800"}, "the namespace"),
    ],
    ids=range(8),
)
def test_what_is_no_question_is_refused_with_its_place(row: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidPatterns, match=message) as caught:
        parse_question_row("here", {"namespace": "a/b", **row})
    assert str(caught.value).startswith("here: ")
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize(
    "line",
    [b"[" * 100_000, b"\xff", b"9" * 5000, b"x" * (MAX_LINE + 1), b"", b'{"pattern": "a", "pattern": "b"}'],
    ids=range(6),
)
def test_a_line_that_is_no_json_is_refused_with_its_place(line: bytes) -> None:
    with pytest.raises(InvalidPatterns, match=r"^here: "):
        parse_json_line("here", line)


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"], ids=range(3))
def test_a_fault_of_a_line_is_at_a_column_alone(end: bytes) -> None:
    with pytest.raises(InvalidPatterns) as caught:
        parse_json_line("here, line 7", b'{"namespace": "a/b"' + end)
    assert str(caught.value) == "here, line 7: not an object of JSON: Expecting ',' delimiter: column 20"


def test_why_a_pattern_is_refused() -> None:
    assert refusal_reason(None, 10) is None
    assert refusal_reason("a.*", 10) is None
    assert "too long" in (refusal_reason("a" * 11, 10) or "") or "longer" in (
        refusal_reason("a" * 11, 10) or ""
    )
    assert refusal_reason("(?=x)", 10)
    assert refusal_reason("*a", 10)


def test_the_time_of_the_last_question_is_utc() -> None:
    wanted = datetime(2026, 3, 1, 10, 15, tzinfo=UTC)
    for text in ("2026-03-01T10:15:00Z", "2026-03-01T11:15:00+01:00", "2026-03-01 10:15", wanted):
        assert parse_last_time("here", {"last_asked": text}) == wanted
    assert parse_last_time("here", {"last_asked": None}) is None
    assert parse_last_time("here", {}) is None


@pytest.mark.parametrize(
    "value",
    ["yesterday", "", 17, [], datetime.max.replace(tzinfo=timezone(timedelta(hours=-1))), "x" * 5000],
    ids=range(6),
)
def test_what_is_no_time_is_refused_with_its_place(value: object) -> None:
    with pytest.raises(InvalidPatterns, match="here: last_asked must be a time such as") as caught:
        parse_last_time("here", {"last_asked": value})
    assert len(str(caught.value)) < 300
