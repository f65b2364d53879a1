"""`broker-core serve` as operators run it: a process of its own, a TOML file, and a line when it is ready."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.support.forked_programs import ForkedProcess, server_of_the_run
from tests.support.program_lines import ProgramLines

__all__ = ["Served", "broker_core_command", "to_toml"]


def broker_core_command() -> str:
    """The command `broker-core` of the environment that the tests run in."""
    return str(Path(sys.executable).parent / "broker-core")


def to_toml(settings: Mapping[str, Any]) -> str:
    """Nested mappings as TOML: values first, then tables."""
    return "\n".join(_table(settings, ())) + "\n"


def _table(settings: Mapping[str, Any], path: tuple[str, ...]) -> list[str]:
    lines = [f"[{'.'.join(map(json.dumps, path))}]"] if path else []
    lines += [
        f"{json.dumps(key)} = {_value(value)}"
        for key, value in settings.items()
        if not isinstance(value, Mapping)
    ]
    for key, value in settings.items():
        if isinstance(value, Mapping):
            lines += _table(value, (*path, key))
    return lines


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        pairs = (f"{json.dumps(key)} = {_value(each)}" for key, each in value.items())
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    return json.dumps(value)  # a JSON text, number or boolean is TOML as well


class Served:
    """A served subprocess; a context manager. ``settings`` are the tables of the TOML file (``quotas``: a list of
    them), on top of free ports. In tests it is forked with all imported; not with a ``command``, or ``fresh``.

    ``folder`` takes the TOML file and the log; ``python_path`` is where more distributions (plugins) are found,
    ``command`` the `broker-core` to run, by default that of the environment of the tests.
    """

    def __init__(
        self,
        folder: Path,
        settings: Mapping[str, Any],
        *,
        python_path: Path | None = None,
        command: Path | None = None,
        fresh: bool = False,
        start_seconds: float = 300.0,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.config = folder / "broker-core.toml"
        self.log = folder / "broker-core.log"
        tables = {
            "pulsar": {"listen": "127.0.0.1:0"},
            **{
                name: dict(table) if isinstance(table, Mapping) else table for name, table in settings.items()
            },
        }
        tables["pulsar"].setdefault("listen", "127.0.0.1:0")
        self.config.write_text(to_toml(tables), encoding="utf-8")
        self._command = broker_core_command() if command is None else str(command)
        self._environment = dict(os.environ)
        if python_path is not None:
            self._environment["PYTHONPATH"] = str(python_path)
        # Benchmarks measure what operators run.
        self._forks = command is None and not fresh and "PYTEST_CURRENT_TEST" in os.environ
        self._start_seconds = start_seconds
        self._process: subprocess.Popen[bytes] | ForkedProcess | None = None
        self.ready: dict[str, str] = {}
        #: Seconds from the start of the process to its line `ready`.
        self.started_in = 0.0

    @property
    def address(self) -> tuple[str, int]:
        """The address for Pulsar's protocol."""
        host, _, port = self.ready["pulsar"].rpartition(":")
        return host, int(port)

    @property
    def service_url(self) -> str:
        """The URL for clients."""
        return f"pulsar://{self.ready['pulsar']}"

    @property
    def tls_service_url(self) -> str:
        """The URL for clients that speak TLS."""
        return f"pulsar+ssl://{self.ready['pulsar+ssl']}"

    @property
    def pid(self) -> int:
        """The process id of the running server."""
        if self._process is None:
            raise RuntimeError("the server is not running")
        return self._process.pid

    def start(self) -> None:
        """Start and wait for the line `ready`."""
        started = time.monotonic()
        command = [self._command, "serve", "--config", str(self.config)]
        with self.log.open("ab") as log:
            if self._forks:
                self._process = server_of_the_run().serve(command, log, self._environment)
            else:
                self._process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    env=self._environment,
                )
        lines = ProgramLines(self._process)
        try:
            line = lines.wait_for(
                lambda said: said.startswith("ready "),
                self._start_seconds,
                what="the line `ready` of broker-core",
            )
        except BaseException as error:
            self.kill()
            error.add_note(self.log.read_text(errors="replace")[-4000:])
            raise
        self.started_in = time.monotonic() - started
        self.ready = dict(pair.split("=", 1) for pair in line.split()[1:])

    def stop(self) -> int:
        """SIGTERM, and wait for the end; the exit code."""
        process, self._process = self._process, None
        if process is None:
            return 0
        process.terminate()
        try:
            return process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()

    def kill(self) -> None:
        """SIGKILL."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
