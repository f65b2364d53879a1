from __future__ import annotations

import io
import json
import logging

import pytest
import structlog

from broker_core.cli.logs import configure_logs, silence_logs


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_json_lines_for_everything_but_a_terminal() -> None:
    stream = io.StringIO()
    configure_logs("info", "auto", stream)
    structlog.get_logger("x").info("listing failed", namespace="a/b", größe=3)
    structlog.get_logger("x").debug("not heard")
    logging.getLogger("lib").warning("careful %s", "now")
    logging.getLogger("lib").info("not heard")
    ours, theirs = (json.loads(line) for line in stream.getvalue().splitlines())
    assert (ours["event"], ours["level"], ours["namespace"], ours["größe"]) == (
        "listing failed",
        "info",
        "a/b",
        3,
    )
    assert ours["timestamp"].endswith("Z")
    assert (theirs["event"], theirs["level"], theirs["logger"]) == ("careful now", "warning", "lib")


def test_lines_for_a_person_on_a_terminal() -> None:
    stream = Terminal()
    configure_logs("debug", "auto", stream)
    structlog.get_logger("x").debug("listing failed", namespace="a/b")
    assert "listing failed" in stream.getvalue()
    assert not stream.getvalue().startswith("{")


@pytest.mark.parametrize(("form", "stream"), [("json", Terminal()), ("human", io.StringIO())])
def test_the_form_can_be_chosen(form: str, stream: io.StringIO) -> None:
    configure_logs("info", form, stream)  # type: ignore[arg-type]
    structlog.get_logger("x").info("hello")
    assert stream.getvalue().startswith("{") == (form == "json")
    assert "\x1b" not in stream.getvalue() or form == "human"


def test_an_exception_is_in_its_line() -> None:
    stream = io.StringIO()
    configure_logs("info", "json", stream)
    try:
        raise ValueError("odd")
    except ValueError:
        structlog.get_logger("x").exception("failed")
        logging.getLogger("lib").exception("failed too")
    for line in stream.getvalue().splitlines():
        assert "ValueError: odd" in json.loads(line)["exception"]


def test_silence(capsys: pytest.CaptureFixture[str]) -> None:
    silence_logs()
    structlog.get_logger("x").error("not heard")
    logging.getLogger("lib").error("not heard")
    assert capsys.readouterr() == ("", "")
