"""The group has all commands, and imports nothing heavy before one runs."""

from __future__ import annotations

import subprocess
import sys

import typer

from broker_core_spark.commands import COMMANDS, add_commands


def test_every_command_is_there_with_a_help_of_its_own() -> None:
    app = typer.Typer()
    add_commands(app)
    group = typer.main.get_group(app)
    assert set(group.commands) == {*COMMANDS, "patterns"}
    assert all(command.help for command in group.commands.values())


def test_adding_them_imports_neither_spark_nor_arrow() -> None:
    program = (
        "import sys, typer\n"
        "from broker_core_spark.commands import add_commands\n"
        "add_commands(typer.Typer())\n"
        "print(sorted({'pyspark', 'pandas', 'pyarrow', 'numpy', 're2'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
