"""The helpers for commands of plugins, as a plugin uses them."""

from __future__ import annotations

from pathlib import Path

from broker_core import plugin_cli
from tests.cli.conftest import (
    Cli,
    InstallPlugin,
    _in_a_folder_of_its_own,
    cli,
    install_plugin,
)

__all__ = ["_in_a_folder_of_its_own", "cli", "install_plugin"]

DELETING = '''
"""Deletes."""

from dataclasses import dataclass
from typing import Annotated
import typer
from broker_core import hookimpl
from broker_core.plugin_cli import Deletions, RunningBroker, examples, print_table, say

@dataclass(frozen=True)
class Place:
    region: Annotated[str, typer.Option("--region", help="Where.")]
    zone: Annotated[int, typer.Option("--zone")] = 1

@hookimpl
def broker_core_commands(app):
    @app.command()
    def show(zone: Annotated[int, typer.Option("--other")], place: Place) -> None:
        print(zone, place)

    @app.command(epilog=examples("broker-core deleting empty"))
    def empty(*, there: int = 0, going: int = 0, deletions: Deletions) -> None:
        print("looking")
        refusal = deletions.refusal({"a/b": (there, going)})
        if refusal is not None:
            say(refusal.ahead)
        deletions.check({"a/b": (there, going)}, "")
        print_table(["gone"], [[going]])

    @app.command()
    def ask(broker: RunningBroker) -> None:
        print(broker.get("/metrics"))
'''


def test_the_guard_is_one_parameter(cli: Cli, install_plugin: InstallPlugin) -> None:
    install_plugin("deleting", DELETING)
    assert "--max-deletions" in cli("deleting", "empty", "--help").out
    said = cli("deleting", "empty", "--there", 1000, "--going", 500)
    assert said.code == 1
    assert said.out == "looking\n"
    assert "500 of 1000 listed names would be deleted, more than 100" in said.err
    assert cli("deleting", "empty", "--there", 1000, "--going", 500, "--max-deletions", 500).code == 0
    assert cli("deleting", "empty", "--there", 1000, "--going", 500, "--allow-mass-deletions").code == 0


def test_a_dataclass_of_options_is_one_parameter(cli: Cli, install_plugin: InstallPlugin) -> None:
    install_plugin("deleting", DELETING)
    assert cli("deleting", "show", "--other", 2, "--region", "eu").out == "2 Place(region='eu', zone=1)\n"
    assert "Missing option '--region'" in cli("deleting", "show", "--other", 2).err


def test_the_broker_is_one_parameter(cli: Cli, install_plugin: InstallPlugin, tmp_path: Path) -> None:
    install_plugin("deleting", DELETING)
    assert "no --broker" in cli("deleting", "ask").only_error
    assert "is no address of a broker" in cli("deleting", "ask", "--broker", "ftp://x").only_error


def test_all_of_it_is_there() -> None:
    assert all(hasattr(plugin_cli, name) for name in plugin_cli.__all__)
