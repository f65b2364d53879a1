"""The access log: its lines, the sample, and files that take no line."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from broker_core.logs import AccessLog, LogFileError, json_fields
from broker_core.settings import AccessLogSettings
from tests.support.eventually import eventually_sync


@contextmanager
def access_log(path: Path, **settings: Any) -> Iterator[AccessLog]:
    log = AccessLog(AccessLogSettings(path=path, **settings))
    try:
        yield log
    finally:
        log.close(10 if path.is_file() else 0)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_line_has_the_time_and_all_that_has_a_value(tmp_path: Path) -> None:
    with access_log(tmp_path / "log") as log:
        log.write(
            json_fields(
                {"role": None, "client_version": "", "topics": 0, "filtered": False, "x": "ö\n\x7f\x1b"}
            )
        )
    (line,) = lines(tmp_path / "log")
    stamp = line.pop("time")
    assert line == {"topics": 0, "filtered": False, "x": "ö\n\x7f\x1b"}
    assert len(stamp) == len("2026-01-01T00:00:00.000Z")
    assert stamp.endswith("Z")
    assert (tmp_path / "log").read_text().isprintable() or (tmp_path / "log").read_text()[:-1].isprintable()


@pytest.mark.parametrize("share", [0.0, 0.01, 0.25, 0.5, 1.0])
def test_the_sample_is_that_share_of_the_listings(tmp_path: Path, share: float) -> None:
    with access_log(tmp_path / "log", sample=share) as log:
        taken = [log.takes_next() for _ in range(10_000)]
    assert abs(sum(taken) - share * 10_000) <= 10
    # Two clients that take turns have the same share.
    assert abs(sum(taken[::2]) - share * 5_000) <= 20


def test_a_full_disk_is_counted(tmp_path: Path) -> None:
    (tmp_path / "log").symlink_to("/dev/full")
    with access_log(tmp_path / "log") as log:
        for _ in range(3):
            log.write(json_fields({"topics": 1}))
        eventually_sync(lambda: log.dropped.counts()["failed"] == 3, what="three lines failed")


def test_a_pipe_that_nobody_reads_fills_the_queue_and_no_more(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "log")
    with access_log(tmp_path / "log") as log:
        for _ in range(10_000):
            log.write(json_fields({"pattern": "x" * 1000}))
        assert log.dropped.counts()["full"] > 1000
        assert log.dropped.counts()["failed"] == 0


def test_a_file_that_was_moved_away_is_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with access_log(path) as log:
        log.write(json_fields({"topics": 1}))
        eventually_sync(lambda: bool(lines(path)), what="the first line")
        path.rename(tmp_path / "log.1")
        log.write(json_fields({"topics": 2}))
        eventually_sync(lambda: len(lines(tmp_path / "log.1")) == 2, what="the second line")
        log.reopen()
        log.write(json_fields({"topics": 3}))
    assert [line["topics"] for line in lines(tmp_path / "log.1")] == [1, 2]
    assert [line["topics"] for line in lines(path)] == [3]


def test_a_file_that_cannot_be_reopened_leaves_the_former_one(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "log"
    path.parent.mkdir()
    with access_log(path) as log:
        path.parent.rename(tmp_path / "moved")
        with pytest.raises(LogFileError, match=r"log\.access\.path"):
            log.reopen()
        log.write(json_fields({"topics": 1}))
        log.close(10)
    assert [line["topics"] for line in lines(tmp_path / "moved" / "log")] == [1]
