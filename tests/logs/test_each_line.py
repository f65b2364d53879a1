"""Many lines that differ in one field, for any configuration of structlog."""

from __future__ import annotations

import json
from typing import Any

import pytest
import structlog
from structlog.testing import capture_logs

from broker_core.cli.server_process.server_log import configure_logs
from broker_core.logs import EachLine, LogRenderer, RepeatedLines, info_each

NAMES = ["a", "b\n\x7f", "ü"]


def told(level: Any, logger: str = "x", *, human: bool = False, names: list[str] = NAMES) -> list[str]:
    lines: list[str] = []
    configure_logs(level, LogRenderer(human=human), RepeatedLines(), lines.append)
    log = structlog.get_logger(logger).bind()
    info_each(log, "made", EachLine("name", names), size=3, name=names[0], last=True)
    return lines


def test_who_captures_events_gets_one_for_each() -> None:
    with capture_logs() as logs:
        info_each(structlog.get_logger("x").bind(), "made", EachLine("name", ["a", "b"]), size=3, name="a")
    assert logs == [{"event": "made", "log_level": "info", "size": 3, "name": name} for name in ("a", "b")]


def test_the_log_of_a_server_has_a_line_for_each() -> None:
    said = [json.loads(line) for line in told("info")]
    assert [each.pop("name") for each in said] == NAMES
    assert len({each.pop("timestamp") for each in said}) == 1
    assert said == [{"size": 3, "last": True, "event": "made", "level": "info"}] * len(NAMES)


@pytest.mark.parametrize("human", [False, True], ids=["JSON", "for a person"])
def test_each_line_is_as_if_it_were_said_alone(human: bool) -> None:
    together, alone = told("info", human=human), [told("info", human=human, names=[name]) for name in NAMES]

    def untimed(line: str) -> str:
        return line.partition('"timestamp"')[0] if not human else line.partition(" ")[2]

    assert [untimed(line) for line in together] == [untimed(line) for (line,) in alone]


def test_what_a_level_hides_is_hidden() -> None:
    assert told("warning") == []


def test_lines_that_are_folded_are_folded() -> None:
    assert len(told("info", "broker_core.servers.x")) == 1
