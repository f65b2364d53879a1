"""The group has all commands, and imports nothing heavy before one runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
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


@pytest.mark.parametrize(
    ("chosen", "pool"), [({}, "system"), ({"ARROW_DEFAULT_MEMORY_POOL": "mimalloc"}, "mimalloc")]
)
def test_an_increment_takes_memory_from_the_c_library_unless_the_environment_says_otherwise(
    chosen: dict[str, str], pool: str, tmp_path: Path
) -> None:
    program = (
        "import sys\n"
        "from broker_core.cli.command_tree import run\n"
        "sources = ['--catalogue', 'none.sqlite', '--patterns', 'none.jsonl']\n"
        "code = run(['spark', 'build', *sources, '--out', 'store', '--incremental'])\n"
        "import pyarrow\n"
        "print(code, pyarrow.default_memory_pool().backend_name)\n"
    )
    rest = {name: value for name, value in os.environ.items() if not name.startswith("ARROW_")}
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=rest | chosen,
        check=True,
    )
    assert done.stdout == f"1 {pool}\n", done.stderr
