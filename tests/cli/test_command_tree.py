from __future__ import annotations

import subprocess
import sys

import pytest
import typer

import broker_core
from broker_core.cli.command_tree import app, is_of_the_core
from broker_core.plugins.load.registry import RESERVED
from tests.cli.conftest import Cli
from tests.support.narrowed import of_type

COMMANDS = ["serve", "list", "explain", "plugins", "config", "demo", "topics"]
SUBCOMMANDS = ["import", "export", "create", "delete", "show"]


def test_the_version(cli: Cli) -> None:
    assert cli("--version").out == f"broker-core {broker_core.__version__}\n"


def test_help_names_every_command(cli: Cli) -> None:
    said = cli("--help").printed
    for command in COMMANDS:
        assert f" {command} " in said


@pytest.mark.parametrize(
    "command", [[name] for name in COMMANDS if name != "topics"] + [["topics", s] for s in SUBCOMMANDS]
)
def test_every_command_has_help_with_the_common_options_and_examples(cli: Cli, command: list[str]) -> None:
    said = cli(*command, "--help").printed
    assert "--config" in said
    assert "--debug" in said
    assert "Examples" in said
    assert f"broker-core {' '.join(command)}" in said


@pytest.mark.parametrize(
    ("arguments", "wrong"),
    [
        (["nope"], "No such command 'nope'."),
        (["topics", "imprt"], "topics: No such command 'imprt'."),
        (["list"], "list: Missing argument 'NAMESPACE'."),
        (["list", "--patern", "x"], "list: No such option: --patern"),
        (["topics", "import", "public/default"], "topics import: Missing argument 'FILE|-'."),
        (["list", "a/b", "--format", "xml"], "list: Invalid value for '--format'"),
        (["serve", "extra"], "serve: Got unexpected extra argument"),
    ],
)
def test_wrong_usage_is_one_line_that_names_it(cli: Cli, arguments: list[str], wrong: str) -> None:
    assert cli(*arguments).refused(2).startswith(wrong)


def test_no_command_is_the_help(cli: Cli) -> None:
    for arguments in ([], ["topics"]):
        said = cli(*arguments)
        assert said.code == 2
        assert "Usage: broker-core" in said.out
        assert not said.err


def test_runs_do_not_know_of_each_other(cli: Cli) -> None:
    assert "absent.toml" in cli("config", "--config", "absent.toml").only_error
    assert cli("config").code == 0


def test_help_needs_neither_arrow_nor_pydantic() -> None:
    """`broker-core --help` and the completion of a shell must feel like nothing."""
    program = (
        "import sys\n"
        "from broker_core.cli.command_tree import run\n"
        "run(['--help'])\n"
        "heavy = {'pyarrow', 'numpy', 're2', 'pydantic', 'aiohttp', 'google.protobuf', 'asyncio', 'structlog'}\n"
        "print('heavy:', sorted(heavy & set(sys.modules)))\n"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert said.stdout.endswith("heavy: []\n")


def test_no_plugin_can_have_the_name_of_a_command() -> None:
    group = of_type(typer.main.get_command(app), typer.core.TyperGroup)
    assert set(group.commands) <= set(RESERVED)


def test_commands_of_the_core_are_told_from_those_of_plugins() -> None:
    assert all(map(is_of_the_core, ([], ["--help"], ["list", "a/b"], ["topics", "--debug", "show"])))
    assert not is_of_the_core(["postgres", "list"])
