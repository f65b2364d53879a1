from __future__ import annotations

import os
from pathlib import Path

import pytest

from broker_core.cli.startup_checks.written_files import guard_file_checks, log_checks
from broker_core.plugin_api.check_findings import Check


def test_the_file_of_the_log_is_looked_at_and_not_made(tmp_path: Path) -> None:
    def verdict(file: Path | None) -> str:
        return " ".join(f"{check.level} {check.text}" for check in log_checks("log.file", file))

    assert verdict(None) == ""
    assert verdict(tmp_path / "x.log") == f"ok {tmp_path}/x.log is not there: the server makes it"
    assert verdict(tmp_path / "absent" / "x.log").startswith("error")
    assert f"there is no folder {tmp_path}/absent" in verdict(tmp_path / "absent" / "x.log")
    assert verdict(tmp_path) == f"error {tmp_path} is a folder, not a file"
    (tmp_path / "leads-nowhere.log").symlink_to(tmp_path / "gone" / "x.log")
    assert f"there is no folder {tmp_path}/gone" in verdict(tmp_path / "leads-nowhere.log")
    (tmp_path / "is-a-file").touch()
    assert verdict(tmp_path / "is-a-file").startswith("ok")
    assert verdict(tmp_path / "is-a-file" / "x.log").startswith("error")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["is-a-file", "leads-nowhere.log"]


def test_a_log_that_this_user_cannot_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may do anything
    (file := tmp_path / "x.log").touch()
    assert list(log_checks("log.file", file)) == [
        Check.error("log.file", f"{file} cannot be written by this user")
    ]
    (absent,) = log_checks("log.access.path", tmp_path / "y.log")
    assert (absent.level, absent.name) == ("error", "log.access.path")


def test_the_file_of_the_shrink_guard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def verdict(file: Path | None) -> str:
        return " ".join(f"{check.level} {check.text}" for check in guard_file_checks(file))

    file = tmp_path / "guard"
    assert verdict(None) == ""
    assert verdict(file) == f"ok {file} can be written"
    assert verdict(tmp_path / "absent" / "guard").startswith(
        f"warning {tmp_path}/absent/guard: there is no folder {tmp_path}/absent"
    )
    assert verdict(tmp_path).startswith(f"warning {tmp_path} is not a file")
    assert not list(tmp_path.iterdir())
    (tmp_path / "notes").write_text("of others\n")
    assert verdict(tmp_path / "notes").startswith(f"warning {tmp_path}/notes is another file")
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may do anything
    assert "this user cannot make a file in" in verdict(file)
