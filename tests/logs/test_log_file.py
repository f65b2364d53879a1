"""Opening a file of the log: made if it is not there, and no wait for the reader of a named pipe."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from broker_core.logs import LogFileError
from broker_core.logs.log_file import open_log_file


def test_lines_are_appended(tmp_path: Path) -> None:
    file = tmp_path / "log"
    for line in (b"first\n", b"second\n"):
        descriptor = open_log_file("log.file", file)
        os.write(descriptor, line)
        os.close(descriptor)
    assert file.read_bytes() == b"first\nsecond\n"
    assert file.stat().st_mode & 0o137 == 0


def test_a_named_pipe_needs_no_reader(tmp_path: Path) -> None:
    os.mkfifo(pipe := tmp_path / "pipe")
    descriptor = open_log_file("log.file", pipe)
    os.write(descriptor, b"waits\n")
    reader = os.open(pipe, os.O_RDONLY)
    assert os.read(reader, 100) == b"waits\n"
    os.close(reader)
    os.close(descriptor)


def test_a_file_that_cannot_be_written_is_named_with_its_setting(tmp_path: Path) -> None:
    with pytest.raises(LogFileError, match=rf"log.access.path: cannot write {tmp_path}: Is a directory"):
        open_log_file("log.access.path", tmp_path)
