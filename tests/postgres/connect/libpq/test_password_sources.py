"""The order of password sources, and the sources that are refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from broker_core_postgres.connect.libpq.dsn_error import DsnError
from broker_core_postgres.connect.libpq.password_sources import PasswordSource
from tests.support.files import file_with

_HOST = ("db", 5432, "x", "me")


def test_the_nearest_source_counts(tmp_path: Path) -> None:
    file = file_with(tmp_path / "secret", "of file\n")
    passfile = file_with(tmp_path / "pgpass", "db:5432:x:me:of passfile\n")
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
