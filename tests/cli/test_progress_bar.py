from __future__ import annotations

import io
import os
import sys
from pathlib import Path

import pytest

from broker_core.cli.progress_bar import import_progress
from tests.support.files import file_with
from tests.support.narrowed import present


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_there_is_none_without_a_terminal() -> None:
    with import_progress(io.BytesIO(b"x")) as progress:
        assert progress is None


def test_a_terminal_sees_both_phases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    file = file_with(tmp_path / "names", b"x" * 100)
    with file.open("rb") as source, import_progress(source) as progress:
        assert progress is not None
        progress("read", 50)
        progress("read", 100)
        progress("write", 100)
        progress("write", 100)
    said = terminal.getvalue()
    assert "reading" in said or "writing 100 topics" in said


def test_a_pipe_has_no_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    for source in (os.fdopen(os.open(os.devnull, os.O_RDONLY), "rb"), io.BytesIO(b"x")):
        with source, import_progress(source) as progress:
            present(progress)("read", 1)
