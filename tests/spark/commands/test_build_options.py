"""The options of ``broker-core spark build``: values that are refused before anything is read."""

from __future__ import annotations

import pytest

from broker_core.cli.command_tree import run

REQUIRED = ("--catalogue", "none.sqlite", "--patterns", "none.jsonl", "--out", "none")


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--partitions", "0"),
        ("--largest-segment", "1000"),
        ("--min-questions", "-1"),
        ("--max-question-loss", "1.5"),
        ("--keep-learned", "soon"),
        ("--progress", "loud"),
    ],
)
def test_values_that_are_none(capsys: pytest.CaptureFixture[str], option: str, value: str) -> None:
    assert run(["spark", "build", *REQUIRED, option, value]) == 2
    assert option in capsys.readouterr().err


def test_what_is_required(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["spark", "build", *REQUIRED[:-2]]) == 2
    assert "--out" in capsys.readouterr().err
    assert run(["spark", "build", *REQUIRED[-4:]]) == 2
    assert "of which topics" in capsys.readouterr().err
