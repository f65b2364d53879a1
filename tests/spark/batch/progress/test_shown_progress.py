"""Progress as lines and on a terminal."""

from __future__ import annotations

import io

import pytest

from broker_core_spark.batch.progress.progress import SparkJob
from broker_core_spark.batch.progress.shown_progress import ProgressLines, terminal_progress

JOB = SparkJob("make segments", {"segments": 3})


def test_lines_come_for_each_step_and_now_and_then() -> None:
    lines: list[str] = []
    now = 0
    progress = ProgressLines(lines.append, every=30, clock=lambda: now)
    progress.step("segments")
    for now in (10, 29, 31, 40, 62):
        progress.tasks(JOB, now, 100, now)
    assert [line.partition(",")[0] for line in lines] == [
        "segments",
        "make segments: 3 segments: 31 of 100 tasks",
        "make segments: 3 segments: 62 of 100 tasks",
    ]


def test_a_terminal_has_one_line_that_is_gone_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    terminal = io.StringIO()
    with terminal_progress(terminal) as progress:
        progress.step("catalogue")
        progress.tasks(JOB, 1, 10, 5.0)
    progress.tasks(JOB, 2, 10, 6.0)  # a count that comes late
    assert terminal.getvalue().split("\r\x1b[K") == ["", "catalogue", f"{JOB}: 1 of 10"[:29], ""]
