"""libpq's password file: the entry that matches, and files that are ignored."""

from __future__ import annotations

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from broker_core_postgres.connect.libpq.pgpass import read_pgpass
from tests.support.files import file_with

_HOST = ("db", 5432, "x", "me")


@pytest.mark.parametrize(
    ("line", "asked", "password"),
    [
        ("db:5432:x:me:one", _HOST, "one"),
        ("*:*:*:*:all", _HOST, "all"),
        ("other:5432:x:me:one", _HOST, None),
        ("db:5433:x:me:one", _HOST, None),
        (r"db:*:*:me:with\:colon\\back", _HOST, r"with:colon\back"),
        (r"\:\:1:*:*:me:six", ("::1", 5432, "x", "me"), "six"),
        ("localhost:*:*:me:socket", ("/run/postgresql", 5432, "x", "me"), "socket"),
        ("/run/postgresql:*:*:me:folder", ("/run/postgresql", 5432, "x", "me"), "folder"),
        ("# db:5432:x:me:comment", _HOST, None),
        ("db:5432:x:me", _HOST, None),
        ("db:5432:x:me:one:two", _HOST, "one"),
    ],
    ids=["exact", "stars", "host", "port", "escapes", "ipv6", "socket", "folder", "comment", "short", "long"],
)
def test_a_password_file_of_libpq(
    tmp_path: Path, line: str, asked: tuple[str, int, str, str], password: str | None
) -> None:
    file = file_with(tmp_path / "pgpass", f"nothing\n{line}\n")
    file.chmod(0o600)
    assert read_pgpass(file, *asked) == password


def test_a_password_file_that_others_read_is_not_used(tmp_path: Path) -> None:
    file = file_with(tmp_path / "pgpass", "*:*:*:*:known to all\n")
    file.chmod(0o640)
    with capture_logs() as logs:
        assert read_pgpass(file, *_HOST) is None
    assert "chmod 0600" in logs[0]["event"]
    assert "known to all" not in str(logs)
