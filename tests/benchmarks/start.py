"""Duration of commands from start to end, beside an empty Python: ``python -m tests.benchmarks.start``.

Everything is compiled by a first run that is not counted. Each round runs all commands one after the other, so that a
machine that has something else to do slows all of them.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.support.served import Served, broker_core_command

__all__ = ["COMMANDS", "NOTHING", "measure_starts"]

NOTHING: Final = "python -c pass"
#: The arguments of each command, and the milliseconds that it may take on a machine with nothing else to do.
COMMANDS: Final[Mapping[str, int]] = {
    "--version": 100,
    "--help": 250,
    "config": 250,
    "list --help": 250,
    "list public/default": 250,
    "plugins": 500,
}


def measure_starts(rounds: int) -> dict[str, list[float]]:
    """Seconds of each round, by what was run: :data:`NOTHING`, then :data:`COMMANDS`."""
    with tempfile.TemporaryDirectory(prefix="broker-core-bench-") as folder:
        settings = {"catalog": {"path": "c.sqlite"}}
        with Served(Path(folder), settings) as served:
            host, port = served.address
            commands = {NOTHING: [sys.executable, "-c", "pass"]}
            commands |= {words: [broker_core_command(), *words.split()] for words in COMMANDS}
            environment = {**os.environ, "BROKER_CORE_PULSAR__LISTEN": f"{host}:{port}"}
            environment.pop("PYTHONDONTWRITEBYTECODE", None)
            taken: dict[str, list[float]] = {words: [] for words in commands}
            for number in range(rounds + 1):
                for words, command in commands.items():
                    begun = time.perf_counter()
                    subprocess.run(command, env=environment, cwd=folder, capture_output=True, check=True)
                    if number:
                        taken[words].append(time.perf_counter() - begun)
            return taken


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.start", description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    options = parser.parse_args(arguments)
    taken = measure_starts(options.rounds)
    nothing = statistics.median(taken[NOTHING])
    print(f"{'':24}{'median':>10}{'least':>10}{'ratio':>8}{'asked':>10}")
    for words, seconds in taken.items():
        median = statistics.median(seconds)
        asked = f"{COMMANDS[words]} ms" if words in COMMANDS else ""
        print(
            f"{words:24}{median * 1000:7.0f} ms{min(seconds) * 1000:7.0f} ms{median / nothing:7.1f}x{asked:>10}"
        )


if __name__ == "__main__":
    main()
