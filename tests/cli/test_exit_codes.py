from __future__ import annotations

import pytest
import typer

from broker_core.cli.exit_codes import exit_code_of
from broker_core.errors import BrokerCoreError


def _raise(error: BaseException) -> None:
    raise error


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (BrokerCoreError("it is broken"), 1, "broker-core: it is broken\n"),
        (BrokerCoreError("two\nlines \x1b[31mred"), 1, "broker-core: two lines \\x1b[31mred\n"),
        (
            FileNotFoundError(2, "No such file or directory", "f.txt"),
            1,
            "broker-core: f.txt: No such file or directory\n",
        ),
        (OSError("odd"), 1, "broker-core: odd\n"),
        (KeyError("x"), 1, "broker-core: internal error, --debug shows where: KeyError: 'x'\n"),
        (typer.BadParameter("no"), 2, "broker-core: Invalid value: no\n"),
        (KeyboardInterrupt(), 130, ""),
        (typer.Abort(), 130, ""),
        (typer.Exit(7), 7, ""),
    ],
)
def test_every_end_has_a_code_and_at_most_one_line(
    capsys: pytest.CaptureFixture[str], error: BaseException, code: int, said: str
) -> None:
    assert exit_code_of(lambda: _raise(error), debug=False) == code
    assert capsys.readouterr().err == said


def test_debug_shows_the_traceback_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(lambda: _raise(BrokerCoreError("it is broken")), debug=True) == 1
    said = capsys.readouterr().err
    assert "Traceback (most recent call last)" in said
    assert said.endswith("broker-core: it is broken\n")


def test_success_is_zero_or_what_the_command_says() -> None:
    assert exit_code_of(lambda: None, debug=False) == 0
    assert exit_code_of(lambda: 3, debug=False) == 3
