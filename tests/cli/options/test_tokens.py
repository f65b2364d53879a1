from __future__ import annotations

from pathlib import Path

import pytest

from broker_core.cli.options.question import UnusableQuestion
from broker_core.cli.options.tokens import given_token, key_bytes


def test_a_key_has_one_place(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_bytes(b"k" * 32)
    assert key_bytes({"--a": None, "--b": f"file:{file}"}, "x") == ("--b", b"k" * 32)
    file.write_bytes(b" \n")
    with pytest.raises(UnusableQuestion, match="--b: it is empty"):
        key_bytes({"--b": str(file)}, "x")


def test_a_token_has_no_white_space_around_it_and_an_end(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("\n a.b.c \n", encoding="utf-8")
    assert given_token(None, stdin=False, file=file) == "a.b.c"
    file.write_bytes(b"a" * 70_000)
    with pytest.raises(UnusableQuestion, match="there is no token"):
        given_token(None, stdin=False, file=file)
