"""Options of several commands."""

from __future__ import annotations

import pytest

from broker_core.cli.command_tree import run
from broker_core_postgres.plugin import COMMANDS


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_takes_another_database(command: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["postgres", command, "--help"]) == 0
    assert "--dsn" in capfd.readouterr().out
