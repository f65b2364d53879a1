"""Text from clients in log lines: control characters are escaped, and no line is broken."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_core.logs.rendering import LogRenderer
from tests.support.one_test import in_one_test

PASSWORD = "xyzzy"
HOSTILE = "a\x1b]0;owned\x07\x9b31m\nready pulsar=evil\r\u2028\u202e\x7f\x85"


def event(**values: object) -> dict[str, Any]:
    return {"event": "bad frame", "level": "info", "timestamp": "2026-01-01T00:00:00Z", **values}


class Unshowable:
    """A value of a plugin that cannot be shown."""

    def __str__(self) -> str:
        raise RuntimeError("odd")

    __repr__ = __str__


def only_one_line(line: str) -> bool:
    return line.endswith("\n") and line[:-1].isprintable()


@pytest.mark.parametrize("value", [HOSTILE, {"k": [HOSTILE]}, HOSTILE.encode(), (HOSTILE,)])
def test_a_value_stays_in_its_line(value: object) -> None:
    line = LogRenderer(human=True).line(event(error=value))
    assert only_one_line(line)
    assert "\\x1b" in line
    line = LogRenderer(human=False).line(event(error=value))
    assert only_one_line(line)
    assert line.isascii()


def test_json_has_the_value_itself() -> None:
    said = json.loads(LogRenderer(human=False).line(event(error=HOSTILE, size=3, ok=True, none=None)))
    assert said == event(error=HOSTILE, size=3, ok=True, none=None)


@given(st.text(), st.text(), st.booleans())
def test_no_text_breaks_a_line(name: str, text: str, human: bool) -> None:
    line = LogRenderer(human=human).line({"event": text, "level": "info", name: text})
    assert only_one_line(line)
    line.encode()


def test_colours_are_ours_alone() -> None:
    line = LogRenderer(human=True, colors=True).line(event(error=HOSTILE))
    assert "\x1b[" in line
    assert "\x1b]0;" not in line
    assert "\x1b[31m" not in line.partition("error")[2]
    assert line.count("\n") == 1


def raised(text: str) -> Exception:
    try:
        try:
            raise KeyError(text)
        except KeyError as cause:
            raise ValueError(text) from cause
    except ValueError as error:
        return error


def test_a_traceback_is_readable_and_its_text_passes_for_no_line() -> None:
    first, *others = LogRenderer(human=True).line(event(exc_info=raised(HOSTILE))).rstrip("\n").split("\n")
    assert "bad frame" in first
    assert all(line.startswith("    ") and line.isprintable() for line in others)
    text = "\n".join(others)
    assert text.count("Traceback (most recent call last):") == 2
    assert "raise ValueError(text) from cause" in text
    assert "direct cause" in text
    last = others[-1].strip()
    assert last.startswith("ValueError: a\\x1b]0;owned")
    assert "\\nready pulsar=evil" in last


def test_groups_and_notes_are_indented_too() -> None:
    group = ExceptionGroup("several", [raised("x"), raised(HOSTILE)])
    group.add_note(HOSTILE)
    _, *others = LogRenderer(human=True).line(event(exc_info=group)).rstrip("\n").split("\n")
    assert all(line.startswith("    ") and line.isprintable() for line in others)


def test_json_has_the_traceback_as_a_text() -> None:
    said = json.loads(LogRenderer(human=False).line(event(exc_info=raised("odd"))))
    assert said["exception"].startswith("Traceback")
    assert said["exception"].endswith("ValueError: odd")
    assert "exc_info" not in said


@pytest.mark.parametrize("form", ["an exception", "a triple", "true"])
def test_the_forms_of_an_exception(form: str) -> None:
    error = raised("odd")
    try:
        raise error
    except ValueError:
        given: object = {"an exception": error, "a triple": (ValueError, error, None), "true": True}[form]
        line = LogRenderer(human=False).line(event(exc_info=given))
    assert "ValueError: odd" in json.loads(line)["exception"]
    assert "exception" not in json.loads(LogRenderer(human=False).line(event(exc_info=(None, None, None))))


def test_long_values_are_cut() -> None:
    for human in (True, False):
        assert len(LogRenderer(human=human).line(event(error="x" * 10**6))) < 10_000
        assert len(LogRenderer(human=human).line(event(exc_info=raised("x" * 10**6)))) < 40_000


class Unspeakable:
    def __repr__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize("human", [True, False])
def test_what_cannot_be_shown_fails_nobody(human: bool) -> None:
    line = LogRenderer(human=human).line(event(thing=Unspeakable()))
    assert "bad frame" in line
    assert "RuntimeError" in line
    assert only_one_line(line)


def test_json_hides_credentials_of_one_value_among_many() -> None:
    line = LogRenderer(human=False).line(
        {
            "event": "x",
            "target": "persistent://a/b/c",
            "address": f"redis://me:{PASSWORD}@host",
            7: "token=abc",  # type: ignore[dict-item]
        }
    )
    told = json.loads(line)
    assert told["target"] == "persistent://a/b/c"
    assert PASSWORD not in line
    assert "abc" not in line
    assert told["7"].startswith("token=")


@in_one_test("human", [False, True])
@in_one_test(
    "values",
    [
        ["a", "b"],
        [],
        ["a", HOSTILE],
        ["a", f"token={PASSWORD}"],
        ["a", "x" * 9000],
        ["\U0001f600" * 800],
        ["\ud800"],
    ],
)
@in_one_test(
    "others", [{}, {"by": HOSTILE}, {"by": f"password={PASSWORD}"}, {"by": "y" * 8000}, {"by": Unshowable()}]
)
def test_the_lines_of_many_values_are_those_of_each(
    human: bool, values: list[str], others: dict[str, object]
) -> None:
    renderer = LogRenderer(human=human)
    for said in (event(name="", **others), {"name": "", **event(**others)}, event(**others, name="")):
        lines = renderer.lines(said, "name", values)
        assert lines == [renderer.line({**said, "name": value}) for value in values]
        assert PASSWORD not in "".join(lines)


def test_the_tracebacks_of_many_values_are_those_of_each() -> None:
    said = event(name="", exc_info=raised(PASSWORD))
    renderer = LogRenderer(human=False)
    assert renderer.lines(said, "name", ["a"]) == [renderer.line({**said, "name": "a"})]
