from __future__ import annotations

import pytest
import typer
from typer.testing import CliRunner

from broker_core.cli.common_options import command
from broker_core.cli.options.deletion_limits import Deletions

app = typer.Typer()


@app.command()
@command
def run(deletions: Deletions) -> None:
    print(deletions.most, deletions.mass)


@pytest.mark.parametrize(
    ("arguments", "allowed"),
    [
        ([], "None False"),
        (["--max-deletions", "0"], "0 False"),
        (["--max-deletions", "12", "--allow-mass-deletions"], "12 True"),
    ],
)
def test_nothing_is_allowed_unless_it_is_said(arguments: list[str], allowed: str) -> None:
    assert CliRunner().invoke(app, arguments).output.strip() == allowed


def test_fewer_than_none_cannot_be_deleted() -> None:
    assert CliRunner().invoke(app, ["--max-deletions", "-1"]).exit_code == 2
