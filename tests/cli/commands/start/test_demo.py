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


def _run(folder: Path, command: Path | str, *, try_commands: bool = False) -> list[str]:
    """Start the demo, try its three commands as a shell would, stop it; what it said."""
    with (folder / "log").open("ab") as errors:
        process = subprocess.Popen([command, "demo"], stdout=subprocess.PIPE, stderr=errors, cwd=folder)
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
    taken = [socket.socket() for _ in (6650, 8080)]
    for each, port in zip(taken, (6650, 8080), strict=True):
        each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            each.bind(("127.0.0.1", port))
            each.listen()
        except OSError:  # by somebody else, which is as good
            pass
    try:
        said = _run(tmp_path, forked_program("broker-core"))
    finally:
        for each in taken:
            each.close()
    assert "pulsar: 127.0.0.1:6650 is taken, so a free port is used" in said
    assert "pulsar=127.0.0.1:6650 " not in said[0]


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
