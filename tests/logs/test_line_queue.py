"""The writer thread of the log, with pipes that are read, not read, and closed."""

from __future__ import annotations

import fcntl
import os
import select
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from broker_core.logs.line_queue import LineQueue
from tests.support.eventually import eventually_sync


class Pipe:
    """A pipe of one page."""

    def __init__(self) -> None:
        self.out, self.into = os.pipe()
        fcntl.fcntl(self.into, fcntl.F_SETPIPE_SZ, 4096)
        self.closed = False

    def read_to(self, end: bytes) -> bytes:
        data = b""
        while not data.endswith(end):
            data += os.read(self.out, 1 << 16)
        return data

    def close_reader(self) -> None:
        if not self.closed:
            os.close(self.out)
            self.closed = True


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    pipe = Pipe()
    yield pipe
    pipe.close_reader()
    os.close(pipe.into)


@pytest.fixture
def dropped() -> Counter[str]:
    return Counter()


def writer(pipe: Pipe, dropped: Counter[str], **options: Any) -> LineQueue:
    def count(reason: str, lines: int) -> None:
        dropped[reason] += lines

    return LineQueue(pipe.into, on_dropped=count, **options)


def test_lines_arrive_in_order_and_whole(pipe: Pipe, dropped: Counter[str]) -> None:
    log = writer(pipe, dropped)
    lines = [f"{number} {'x' * (number % 700)}\n" for number in range(3000)] + ["ö" * 9000 + "\n", "end\n"]
    assert all(log.offer(line) for line in lines)
    assert pipe.read_to(b"end\n").decode() == "".join(lines)
    assert log.close(10)
    assert not dropped


def test_nobody_waits_for_a_pipe_that_nobody_reads(pipe: Pipe, dropped: Counter[str]) -> None:
    log = writer(pipe, dropped, max_lines=50, max_bytes=1 << 20)
    line = "x" * 999 + "\n"
    taken = sum(log.offer(line) for _ in range(2000))
    # Four lines are in the pipe, four in the writer's hand.
    assert 50 <= taken <= 60
    assert dropped == {"full": 2000 - taken}
    begun = time.monotonic()
    assert not log.flush(0.05)
    assert not log.close(0.05)
    assert time.monotonic() - begun < 60
    assert not log.offer("too late\n")
    eventually_sync(lambda: not log._thread.is_alive(), what="the thread ended")


def test_what_waits_is_written_when_somebody_reads_again(pipe: Pipe, dropped: Counter[str]) -> None:
    log = writer(pipe, dropped, max_lines=50)
    offered = [f"{number:999}\n" for number in range(100)]
    taken = [line for line in offered if log.offer(line)]
    assert pipe.read_to(taken[-1].encode()).decode() == "".join(taken)
    assert log.offer("more\n")
    assert pipe.read_to(b"more\n") == b"more\n"
    assert log.close(10)
    assert dropped["full"] == 100 - len(taken)


def test_the_queue_is_bounded_in_bytes(pipe: Pipe, dropped: Counter[str]) -> None:
    log = writer(pipe, dropped, max_bytes=10_000)
    taken = sum(log.offer("x" * 999 + "\n") for _ in range(100))
    assert taken <= 20
    log.close(0)


def test_a_reader_that_is_gone_is_counted_and_lines_go_on(
    pipe: Pipe, dropped: Counter[str], tmp_path: Path
) -> None:
    log = writer(pipe, dropped)
    pipe.close_reader()
    for _ in range(3):
        assert log.offer("lost\n")
        assert log.flush(10)
    assert dropped == {"failed": 3}
    log.replace(os.open(tmp_path / "log", os.O_WRONLY | os.O_CREAT))
    assert log.offer("found\n")
    assert log.close(10)
    assert (tmp_path / "log").read_text() == "found\n"


def test_a_file_is_replaced_by_another(tmp_path: Path) -> None:
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
    log = LineQueue(os.open(tmp_path / "log", flags), owned=True)
    log.offer("first\n")
    assert log.flush(10)
    (tmp_path / "log").rename(tmp_path / "log.1")
    log.replace(os.open(tmp_path / "log", flags))
    log.offer("second\n")
    assert log.close(10)
    assert (tmp_path / "log.1").read_text() == "first\n"
    assert (tmp_path / "log").read_text() == "second\n"


def test_a_pipe_that_nobody_reads_can_be_replaced(pipe: Pipe, dropped: Counter[str], tmp_path: Path) -> None:
    log = writer(pipe, dropped)
    for number in range(10):
        log.offer(f"{number:999}\n")
    eventually_sync(lambda: select.select([pipe.out], [], [], 0)[0], what="the first lines")
    log.replace(os.open(tmp_path / "log", os.O_WRONLY | os.O_CREAT))
    log.offer("end\n")
    assert log.close(10)
    written = os.read(pipe.out, 1 << 16).decode() + (tmp_path / "log").read_text()
    assert [line.strip() for line in written.splitlines()] == [*map(str, range(10)), "end"]


def test_lines_that_are_due_come_from_the_thread_itself(pipe: Pipe) -> None:
    due = [["counted\n"], ["again\n"]]
    log = LineQueue(pipe.into, more=lambda: due.pop(0) if due else [])
    assert pipe.read_to(b"again\n") == b"counted\nagain\n"
    log.close(10)
