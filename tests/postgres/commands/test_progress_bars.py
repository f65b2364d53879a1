from __future__ import annotations

import sys

import pytest

from broker_core_postgres.commands.progress_bars import mirror_progress


def test_nothing_is_drawn_where_there_is_no_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    with mirror_progress() as progress:
        progress.read(1, 2, 3)
        progress.write(1, 2)
    assert capfd.readouterr() == ("", "")


def test_a_terminal_sees_bars(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    with mirror_progress() as progress:
        progress.read(2, 2, 30)
        progress.write(1, 1)
    said = capsys.readouterr()
    assert not said.out
    assert "namespaces" in said.err
