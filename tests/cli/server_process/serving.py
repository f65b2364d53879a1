"""`broker-core serve` as a process, for tests."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.support.program_lines import ProgramLines

COMMAND = [sys.executable, "-m", "broker_core.cli"]


class Server:
    """`broker-core serve` as a process."""

    def __init__(self, folder: Path, *arguments: str, command: Sequence[str] = COMMAND) -> None:
        self.log = folder / "log"
        with self.log.open("wb") as log:
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


def started(servers: list[Server], folder: Path, *arguments: str) -> Server:
    server = Server(folder, *arguments)
    servers.append(server)
    return server
