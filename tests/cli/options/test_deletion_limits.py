from __future__ import annotations

import typer
from typer.testing import CliRunner

from broker_core.cli.options.deletion_limits import AllowMassDeletionsOption, MaxDeletionsOption

app = typer.Typer()


@app.command()
def run(
    max_deletions: MaxDeletionsOption = None, allow_mass_deletions: AllowMassDeletionsOption = False
) -> None:
    print(max_deletions, allow_mass_deletions)


def said(*arguments: str) -> str:
    return CliRunner().invoke(app, list(arguments)).output.strip()


def test_nothing_is_allowed_unless_it_is_said() -> None:
    assert said() == "None False"
    assert said("--max-deletions", "0") == "0 False"
    assert said("--max-deletions", "12", "--allow-mass-deletions") == "12 True"


def test_fewer_than_none_cannot_be_deleted() -> None:
    assert CliRunner().invoke(app, ["--max-deletions", "-1"]).exit_code == 2
