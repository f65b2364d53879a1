"""Where a password is found, in which order, and what refuses."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from broker_core_postgres.connect.libpq.password_sources import DsnError, PasswordSource, read_pgpass

_HOST = ("db", 5432, "x", "me")


def test_the_nearest_source_counts(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("of file\n")
    passfile = tmp_path / "pgpass"
    passfile.write_text("db:5432:x:me:of passfile\n")
    passfile.chmod(0o600)
    environment = {"MINE": "of variable", "PGPASSWORD": "of PGPASSWORD", "PGPASSFILE": str(passfile)}
    assert PasswordSource(given="given", file=file).password(environment, *_HOST) == "given"
    assert PasswordSource(file=file, service="of service").password(environment, *_HOST) == "of file"
    assert (
        PasswordSource(variable="MINE", service="of service").password(environment, *_HOST) == "of variable"
    )
    assert PasswordSource(service="of service").password(environment, *_HOST) == "of service"
    assert PasswordSource().password(environment, *_HOST) == "of PGPASSWORD"
    del environment["PGPASSWORD"]
    assert PasswordSource().password(environment, *_HOST) == "of passfile"
    assert PasswordSource(passfile=tmp_path / "none").password(environment, *_HOST) is None


def test_a_password_file_is_read_again_each_time(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    source = PasswordSource(file=file)
    for content, password in (
        (b"one\n", "one"),
        (b"two", "two"),
        (b" three \r\n", " three "),
        (b"a\nb\n", "a\nb"),
    ):
        file.write_bytes(content)
        assert source.password({}, *_HOST) == password


def test_what_the_settings_name_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(DsnError, match=r"password_file: cannot read .*No such file"):
        PasswordSource(file=tmp_path / "none").password({}, *_HOST)
    with pytest.raises(DsnError, match=r"password_file: cannot read .*directory"):
        PasswordSource(file=tmp_path).password({}, *_HOST)
    with pytest.raises(DsnError, match="no variable MINE"):
        PasswordSource(variable="MINE").password({}, *_HOST)
    (tmp_path / "large").write_bytes(b"x" * 100_000)
    with pytest.raises(DsnError, match="more than 65536 bytes"):
        PasswordSource(file=tmp_path / "large").password({}, *_HOST)
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    with pytest.raises(DsnError, match="not UTF-8"):
        PasswordSource(file=tmp_path / "bytes").password({}, *_HOST)


def test_a_pipe_that_nobody_writes_holds_nobody(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert PasswordSource(file=tmp_path / "pipe").password({}, *_HOST) == ""


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
    file = tmp_path / "pgpass"
    file.write_text(f"nothing\n{line}\n")
    file.chmod(0o600)
    assert read_pgpass(file, *asked) == password


def test_a_password_file_that_others_read_is_not_used(tmp_path: Path) -> None:
    file = tmp_path / "pgpass"
    file.write_text("*:*:*:*:known to all\n")
    file.chmod(0o640)
    with capture_logs() as logs:
        assert read_pgpass(file, *_HOST) is None
    assert "chmod 0600" in logs[0]["event"]
    assert "known to all" not in str(logs)
