"""The DAG of `examples/spark_loop`: run as Airflow runs it, with commands that exist.

Airflow is no dependency of the tests. Its two names are stood in for.
"""

from __future__ import annotations

import os
import runpy
import shlex
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, Self

import pytest

from broker_core_spark.commands.build_command import EXIT_REFUSED
from tests.examples.test_spark_loop import EXAMPLE, assert_is_known, assert_is_schedule
from tests.support.files import file_with

FILE = EXAMPLE / "spark_loop_dag.py"
BASH = "airflow.providers.standard.operators.bash"


class Dag:
    def __init__(self, **given: Any) -> None:
        self.given = given

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class SkipError(Exception):
    pass


class FailError(Exception):
    pass


class Operator:
    """Stands for `BashOperator`: it runs the command, and an exit code of `skip_on_exit_code` skips the task."""

    def __init__(self, **given: Any) -> None:
        self.given, self.before = given, list[Operator]()

    def execute(self, context: Any) -> None:
        code = subprocess.run(["bash", "-c", context], check=False).returncode
        if code == self.given["skip_on_exit_code"]:
            raise SkipError
        assert code == 0

    def __rshift__(self, other: Operator) -> None:
        other.before.append(self)


def module(name: str, **names: Any) -> ModuleType:
    made = ModuleType(name)
    vars(made).update(names)
    return made


@pytest.fixture(params=["airflow.sdk", "airflow"], ids=["Airflow 3", "Airflow 2"])
def loaded(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the file has after it was run with the modules of a release."""
    parts = BASH.split(".")
    for number in range(1, len(parts)):
        name = ".".join(parts[:number])
        monkeypatch.setitem(sys.modules, name, module(name, __path__=[]))
    monkeypatch.setitem(sys.modules, BASH, module(BASH, BashOperator=Operator))
    exceptions = module("airflow.exceptions", AirflowSkipException=SkipError, AirflowFailException=FailError)
    monkeypatch.setitem(sys.modules, "airflow.exceptions", exceptions)
    if request.param == "airflow":
        vars(sys.modules["airflow"])["DAG"] = Dag
    else:
        monkeypatch.setitem(sys.modules, "airflow.sdk", module("airflow.sdk", DAG=Dag))
    return runpy.run_path(str(FILE))


def test_it_runs_one_turn_at_a_time(loaded: dict[str, Any]) -> None:
    given = loaded["dag"].given
    assert_is_schedule(given["schedule"])
    assert (given["max_active_runs"], given["catchup"]) == (1, False)
    assert loaded["gc"].before == [loaded["build"]]


def test_a_closed_gate_is_not_retried(loaded: dict[str, Any]) -> None:
    loaded["build"].execute("exit 0")
    with pytest.raises(FailError, match="a gate is closed"):
        loaded["build"].execute(f"exit {EXIT_REFUSED}")
    with pytest.raises(AssertionError):
        loaded["build"].execute("exit 1")


def test_its_commands_are_known(loaded: dict[str, Any]) -> None:
    commands = [loaded[name].given["bash_command"].split("&&") for name in ("build", "gc")]
    assert [len(each) for each in commands] == [2, 1]
    for command in [*commands[0], *commands[1]]:
        assert_is_known(shlex.split(command))


def test_the_executors_get_an_environment_with_their_python(loaded: dict[str, Any]) -> None:
    build = loaded["build"].given
    python = Path(build["env"]["PYSPARK_PYTHON"])
    assert build["append_env"] is True  # without it the worker's passwords would be away
    words = shlex.split(build["bash_command"])
    archives = next(word for word in words if word.startswith("spark.archives="))
    assert archives.rpartition("#")[2] == python.parts[0] == "env"
    assert words[words.index("--master") + 1].startswith("spark://")


def test_a_task_writes_in_its_own_folder_alone(loaded: dict[str, Any], tmp_path: Path) -> None:
    """The operator removes that folder. A program that writes its arguments stands for `broker-core`."""
    for name in ("bin", "task"):
        (tmp_path / name).mkdir()
    program = file_with(
        tmp_path / "bin" / "broker-core",
        '#!/bin/sh\nwhile [ $# -gt 0 ]; do [ "$1" != --output ] || : > "$2"; shift; done\n',
    )
    program.chmod(0o755)
    subprocess.run(
        ["bash", "-c", loaded["build"].given["bash_command"]],
        cwd=tmp_path / "task",
        env={**os.environ, "PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"},
        check=True,
    )
    assert [path.name for path in (tmp_path / "task").iterdir()] == ["patterns.jsonl"]
