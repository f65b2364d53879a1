from __future__ import annotations

from pathlib import Path

import pytest

from broker_core_postgres.commands.source_options import SourceOptions
from broker_core_postgres.fill.filling_failed import FillingFailed
from tests.support.files import file_with

URL = "https://localhost:8443"


def test_a_token_is_read_from_a_file_or_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = file_with(tmp_path / "token", "abc.def\n")
    assert SourceOptions(URL, token_file=file).address().token == "abc.def"
    monkeypatch.setenv("PULSAR_TOKEN", " xyz ")
    assert SourceOptions(URL, token_env="PULSAR_TOKEN").address().token == "xyz"
    assert SourceOptions(URL).address().token is None


def test_what_is_no_token_is_refused_and_not_shown(tmp_path: Path) -> None:
    file = tmp_path / "token"
    for text in ("", "two words", "é", "a\nb", "x" * 70_000):
        file.write_text(text)
        with pytest.raises(FillingFailed, match="holds no token") as refused:
            SourceOptions(URL, token_file=file).address()
        assert str(refused.value) == f"{file} holds no token: one line of printable ASCII"
    with pytest.raises(FillingFailed, match="no variable NOT_THERE"):
        SourceOptions(URL, token_env="NOT_THERE").address()
    with pytest.raises(FillingFailed, match="both given"):
        SourceOptions(URL, token_file=file, token_env="X").address()


def test_certificates_are_checked(tmp_path: Path) -> None:
    nothing = file_with(tmp_path / "ca.pem", "no certificate")
    with pytest.raises(FillingFailed, match="no authorities"):
        SourceOptions(URL, ca_file=nothing).address()
    with pytest.raises(FillingFailed, match="no usable certificate"):
        SourceOptions(URL, cert_file=nothing).address()
    with pytest.raises(FillingFailed, match="--key-file needs --cert-file"):
        SourceOptions(URL, key_file=nothing).address()
    with pytest.raises(FileNotFoundError):
        SourceOptions(URL, ca_file=tmp_path / "none").address()


def test_the_scope_follows() -> None:
    given = SourceOptions(URL, tenant=["a"], namespace=["a/*"])
    assert (given.scope.tenants, given.scope.namespaces) == (("a",), ("a/*",))
    with pytest.raises(FillingFailed, match="no tenant"):
        _ = SourceOptions(URL, tenant=["a/b"]).scope
