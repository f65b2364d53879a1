"""`broker-core serve` as a process, for tests."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.support.forked_programs import ForkedProcess, server_of_the_run
from tests.support.program_lines import ProgramLines

COMMAND = [sys.executable, "-m", "broker_core.cli"]


class Server:
    """`broker-core serve` as a process; one without a command of its own is forked with all imported."""

    process: subprocess.Popen[bytes] | ForkedProcess

    def __init__(self, folder: Path, *arguments: str, command: Sequence[str] | None = None) -> None:
        self.log = folder / "log"
        with self.log.open("wb") as log:
            if command is None:
                words = ["broker-core", "serve", *arguments]
                self.process = server_of_the_run().serve(words, log, os.environ, folder)
            else:
                self.process = subprocess.Popen(
                    [*command, "serve", *arguments], stdout=subprocess.PIPE, stderr=log, cwd=folder
                )
        self.lines = ProgramLines(self.process)

    def ready(self) -> dict[str, str]:
        """The addresses of the line `ready`."""
        line = self.lines.wait_for(lambda said: said.startswith("ready "), 60, what="ready")
        return dict(pair.split("=", 1) for pair in line.split()[1:])

    def end(self) -> int:
        """Wait for the end; the exit code."""
        return self.process.wait(60)


def started(
    servers: list[Server], folder: Path, *arguments: str, command: Sequence[str] | None = None
) -> Server:
    server = Server(folder, *arguments, command=command)
    servers.append(server)
    return server
