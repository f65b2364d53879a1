from __future__ import annotations

import os
import shlex
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.forked_programs import forked_program
from tests.support.program_lines import ProgramLines

COMMAND = Path(sys.executable).parent / "broker-core"

pytestmark = pytest.mark.skipif(
    not COMMAND.exists(), reason="broker-core is not installed in this environment"
)


def _run(folder: Path, command: Path | str, *options: str, try_commands: bool = False) -> list[str]:
    """Start the demo, try its three commands as a shell would, stop it; what it said."""
    with (folder / "log").open("ab") as errors:
        process = subprocess.Popen(
            [command, "demo", *options], stdout=subprocess.PIPE, stderr=errors, cwd=folder
        )
    try:
        lines = ProgramLines(process)
        lines.wait_for(lambda said: said == "Ctrl-C ends it.", 60, what="all hints")
        said = lines.all()
        commands = [line.strip() for line in said if line.startswith("  ")]
        assert len(commands) == 3
        assert all(shlex.split(command)[0].endswith("broker-core") for command in commands)
        if try_commands:
            _try(commands, folder)
    finally:
        process.terminate()
        assert process.wait(60) == 0
    return said


def _try(commands: list[str], folder: Path) -> None:
    names, table, explanation = (
        subprocess.run(command, shell=True, cwd=folder, capture_output=True, text=True, check=True).stdout
        for command in commands
    )
    assert len(names.splitlines()) == 6
    assert "größen-übersicht" in table
    assert "range" in explanation


def test_it_runs_twice_in_a_row_and_its_commands_work_as_printed(tmp_path: Path) -> None:
    first = _run(tmp_path, forked_program("broker-core"), try_commands=True)
    assert first[0].startswith("ready pulsar=127.0.0.1:")
    assert " http=127.0.0.1:" in first[0]
    assert first[1].startswith("filled ")
    again = _run(tmp_path, COMMAND)
    assert again[1].startswith("found ")
    assert '"ready"' not in (tmp_path / "log").read_text()  # the same terminal has the line


def test_ports_that_are_taken_are_replaced_and_it_says_so(tmp_path: Path) -> None:
    # Ports of this test's own: another program leaves the usual ones free when it likes.
    with socket.create_server(("127.0.0.1", 0)) as pulsar, socket.create_server(("127.0.0.1", 0)) as http:
        taken = {"pulsar": pulsar.getsockname()[1], "http": http.getsockname()[1]}
        (tmp_path / "taken.toml").write_text(
            "".join(f'[{table}]\nlisten = "127.0.0.1:{port}"\n' for table, port in taken.items())
        )
        said = _run(tmp_path, forked_program("broker-core"), "--config", "taken.toml")
    for table, port in taken.items():
        assert f"{table}: 127.0.0.1:{port} is taken, so a free port is used" in said
        assert f"{table}=127.0.0.1:{port} " not in f"{said[0]} "


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    said = subprocess.run(
        [forked_program("broker-core"), "demo", "--folder", tmp_path / "file"],
        capture_output=True,
        text=True,
        check=False,
        env=dict(os.environ),
    )
    assert said.returncode == 1
    assert said.stderr.startswith(f"broker-core: {tmp_path / 'file'}: ")
