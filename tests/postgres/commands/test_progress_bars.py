from __future__ import annotations

import sys

import pytest

from broker_core_postgres.commands.progress_bars import mirror_progress


def test_nothing_is_drawn_without_a_terminal() -> None:
    with mirror_progress() as progress:
        assert (progress.read, progress.write) == (None, None)


def test_a_terminal_sees_bars(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    with mirror_progress() as progress:
        assert progress.read is not None
        assert progress.write is not None
        progress.read(2, 2, 30)
        progress.write(1, 1)
    said = capsys.readouterr()
    assert not said.out
    assert "namespaces" in said.err
