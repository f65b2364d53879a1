from __future__ import annotations

import pytest

from broker_core.cli.error_line import one_line, say


def test_one_line_keeps_names_readable() -> None:
    assert one_line(" größe\t😀\r\n x\x00 ") == "größe 😀 x\\x00"


def test_it_is_one_line_without_passwords(capsys: pytest.CaptureFixture[str]) -> None:
    print("first")
    password = "secret"
    say(f"cannot reach\npostgresql://me:{password}@db/x")
    said = capsys.readouterr()
    assert said.out == "first\n"
    assert said.err.startswith("broker-core: cannot reach postgresql://")
    assert said.err.count("\n") == 1
    assert password not in said.err
