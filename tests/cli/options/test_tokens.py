from __future__ import annotations

from pathlib import Path

import pytest

from broker_core.cli.options.option_values import UnusableQuestion
from broker_core.cli.options.tokens import given_token, key_bytes
from tests.support.files import file_with


def test_a_key_has_one_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = file_with(tmp_path / "key", b"k" * 32)
    assert key_bytes({"--a": None, "--b": f"file:{file}"}, "x") == ("--b", b"k" * 32)
    file.write_bytes(b" \n")
    with pytest.raises(UnusableQuestion, match="--b: it is empty"):
        key_bytes({"--b": str(file)}, "x")
    file.write_bytes(b"k" * 32 + b"\n")
    assert key_bytes({"--secret-key": str(file)}, "x")[1] == b"k" * 32 + b"\n"
    assert "the secret ends in a line break, which is a part of it" in capsys.readouterr().err


def test_a_token_has_no_white_space_around_it_and_an_end(tmp_path: Path) -> None:
    file = file_with(tmp_path / "token", "\n a.b.c \n")
    assert given_token(None, stdin=False, file=file) == "a.b.c"
    file.write_bytes(b"a" * 70_000)
    with pytest.raises(UnusableQuestion, match="there is no token: it is empty, or no text"):
        given_token(None, stdin=False, file=file)
