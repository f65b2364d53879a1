"""Sources of keys: their forms, their bytes, and that nothing shows them."""

from __future__ import annotations

import base64
import os
from pathlib import Path

import pytest

from broker_core.settings.key_source import KeySource

SECRET = b"a secret of thirty-two bytes, yes"
TEXT = base64.b64encode(SECRET).decode()
PEM = "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"


@pytest.mark.parametrize(
    ("text", "kind", "path"),
    [
        ("file:keys/a.der", "file", "keys/a.der"),
        ("file:/etc/a.der", "file", "/etc/a.der"),
        ("file:///etc/a.der", "file", "/etc/a.der"),
        ("file://localhost/etc/a.der", "file", "/etc/a.der"),
        ("env:TOKEN_KEY", "env", None),
        (f"data:;base64,{TEXT}", "data", None),
        (f"data:application/octet-stream;base64,{TEXT}", "data", None),
    ],
)
def test_forms(text: str, kind: str, path: str | None) -> None:
    source = KeySource.parse(text)
    assert source.kind == kind
    assert source.path == (None if path is None else Path(path))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "file:",
        "file://",
        "file://host/a",
        "env:",
        "env:A B",
        "data:,x",
        "data:;base64,###",
        "a.der",
        TEXT,
        "FILE:a",
    ],
)
def test_other_forms_are_refused_without_showing_a_key(text: str) -> None:
    with pytest.raises(ValueError) as refused:
        KeySource.parse(text)
    assert TEXT not in str(refused.value)


def test_a_relative_path_has_a_folder(tmp_path: Path) -> None:
    assert KeySource.parse("file:a").in_folder(tmp_path).path == tmp_path / "a"
    assert KeySource.parse("file:/a").in_folder(tmp_path).path == Path("/a")
    assert KeySource.parse("env:A").in_folder(tmp_path) == KeySource("env", "A")


def test_a_file_is_read_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(SECRET + b"\n")
    assert KeySource("file", str(tmp_path / "a")).read() == SECRET + b"\n"
    with pytest.raises(FileNotFoundError):
        KeySource("file", str(tmp_path / "b")).read()
    (tmp_path / "large").write_bytes(bytes(2 * 1024**2))
    with pytest.raises(ValueError, match="it is no key"):
        KeySource("file", str(tmp_path / "large")).read()


@pytest.mark.parametrize(
    ("value", "key"),
    [(TEXT, SECRET), (f" {TEXT}\n", SECRET), (f"data:;base64,{TEXT}", SECRET), (PEM, PEM.encode())],
)
def test_a_variable_has_base64_or_pem(monkeypatch: pytest.MonkeyPatch, value: str, key: bytes) -> None:
    monkeypatch.setenv("TOKEN_KEY", value)
    assert KeySource.parse("env:TOKEN_KEY").read() == key


@pytest.mark.parametrize("value", ["", "not base64: hunter2"])
def test_another_variable_is_refused(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("TOKEN_KEY", value)
    with pytest.raises(ValueError, match="variable TOKEN_KEY") as refused:
        KeySource.parse("env:TOKEN_KEY").read()
    assert "hunter2" not in str(refused.value)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="pipe is no file"):
        KeySource.parse(f"file:{tmp_path / 'pipe'}").read()


def test_data_is_decoded() -> None:
    assert KeySource.parse(f"data:;base64,{TEXT}").read() == SECRET
    assert KeySource.parse(f"data:;base64,{TEXT[:20]}\n{TEXT[20:]}").read() == SECRET


def test_data_is_not_shown() -> None:
    source = KeySource.parse(f"data:;base64,{TEXT}")
    assert TEXT not in repr(source) + str(source) + f"{source}"
    assert repr(KeySource.parse("file:a")) == "KeySource('file:a')"
