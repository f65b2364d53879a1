"""Source trees under measurement: this one, and another beside it. Each has its own server and its own programs."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.benchmarks.growth.names_columns import PROPERTY_KEYS
from tests.benchmarks.growth.process_usage import has_ended
from tests.support.ports import free_port
from tests.support.served import Served

__all__ = ["ROOT", "BenchmarkFailed", "RunningServer", "Tree", "settings_of"]

ROOT: Final = Path(__file__).parents[3]
_PROGRAMS: Final = Path(__file__).parent / "programs"
#: The permits are a count, not memory that is taken: ten million topics must fit.
_SNAPSHOTS: Final = "64GiB"
_START_SECONDS: Final = 300.0
_PROGRAM_SECONDS: Final = 1_800.0
_POLL: Final = 0.004
_WHERE: Final = "import broker_core; print(broker_core.__file__)"


class BenchmarkFailed(Exception):
    """A process under measurement ended or gave a wrong answer; the message has the end of its log."""


def settings_of(catalog: Path) -> dict[str, dict[str, Any]]:
    """The settings of a server under measurement."""
    return {
        "catalog": {"path": str(catalog), "property_keys": list(PROPERTY_KEYS)},
        "limits": {"snapshots": _SNAPSHOTS},
    }


@dataclass(frozen=True, slots=True)
class Tree:
    """A source tree, by what its column is called. All run in the environment of this process."""

    label: str
    path: Path

    @property
    def environment(self) -> dict[str, str]:
        """The environment of its programs: they import ``broker_core`` from it."""
        environment = {**os.environ, "PYTHONPATH": str(self.path)}
        # Else each start compiles everything.
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        return environment

    def check(self) -> None:
        """Raise :exc:`BenchmarkFailed` if the folder is not a tree, or its package does not come first."""
        found = self._run([sys.executable, "-P", "-c", _WHERE], 60).strip()
        if Path(found).parents[1].resolve() != self.path.resolve():
            raise BenchmarkFailed(f"{self.path} has no package broker_core: {found} would be measured")

    def commit(self) -> str:
        """The commit that is checked out, with a ``+`` if files differ from it."""
        try:
            return self._run(["git", "-C", str(self.path), "describe", "--always", "--dirty=+"], 60).strip()
        except (BenchmarkFailed, OSError):
            return "no commit"

    def program(self, name: str, **arguments: object) -> dict[str, Any]:
        """Run a file of ``programs/`` with this tree's package to its end: the JSON object that it prints."""
        said = self._run(self._command(name, arguments), _PROGRAM_SECONDS)
        found: dict[str, Any] = json.loads(said.splitlines()[-1])  # behind what was logged
        return found

    @contextmanager
    def beside(self, name: str, **arguments: object) -> Iterator[subprocess.Popen[str]]:
        """A server of the tree that runs while the block runs; the end of its standard input ends it."""
        with subprocess.Popen(
            self._command(name, arguments),
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                yield process
            finally:
                process.kill()

    def _command(self, name: str, arguments: Mapping[str, object]) -> list[str]:
        return [sys.executable, str(_PROGRAMS / f"{name}.py"), json.dumps(arguments, default=str)]

    def _run(self, command: list[str], seconds: float) -> str:
        done = subprocess.run(
            command, env=self.environment, capture_output=True, text=True, check=False, timeout=seconds
        )
        if done.returncode != 0:
            raise BenchmarkFailed(f"{self.label}: {' '.join(command)[:200]}: {done.stderr[-3000:]}")
        return done.stdout

    @contextmanager
    def server(self, catalog: Path) -> Iterator[RunningServer]:
        """A server of this tree for a catalogue, started; its log is beside the catalogue.

        An error of a connection inside the block becomes a :exc:`BenchmarkFailed` that says whether the server runs.
        """
        port = free_port()
        settings = {**settings_of(catalog), "http": {"listen": f"127.0.0.1:{port}"}}
        served = Served(catalog.parent, settings, python_path=self.path, start_seconds=_START_SECONDS)
        watch = _ReadyWatch(port)
        try:
            served.start()
            running = RunningServer(self, served, watch)
            watch.wait()
        except BaseException as error:
            watch.cancel()
            served.kill()
            if isinstance(error, Exception):
                raise BenchmarkFailed(f"{self.label}: the server did not start: {error}") from error
            raise
        try:
            yield running
        except OSError as error:
            state = "the server has ended" if has_ended(running.pid) else "the server runs"
            raise BenchmarkFailed(f"{self.label}: {error}; {state}. {_end_of(served.log)}") from error
        finally:
            served.stop()


@dataclass(slots=True)
class RunningServer:
    """A server that runs."""

    tree: Tree
    served: Served
    _watch: _ReadyWatch

    @property
    def pid(self) -> int:
        """Its process."""
        return self.served.pid

    @property
    def address(self) -> tuple[str, int]:
        """The address for Pulsar's protocol."""
        return self.served.address

    @property
    def catalog(self) -> Path:
        """The file that it serves."""
        return self.served.log.with_name("catalog.sqlite")

    @property
    def ready_after(self) -> float:
        """Seconds from the start of the process until ``/-/ready`` said so."""
        return self._watch.seconds


class _ReadyWatch:
    """Asks ``/-/ready`` from the start of a process on, every four milliseconds."""

    def __init__(self, port: int) -> None:
        self.begun = time.perf_counter()
        self.seconds = float("inf")
        self._port = port
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._ask, name="ready", daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Until it was ready."""
        self._thread.join(_START_SECONDS)
        if self.seconds == float("inf"):
            raise BenchmarkFailed(f"/-/ready did not say so within {_START_SECONDS:.0f} s")

    def cancel(self) -> None:
        """Ask no more."""
        self._ended.set()

    def _ask(self) -> None:
        while not self._ended.wait(_POLL):
            connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=5)
            try:
                connection.request("GET", "/-/ready")
                if connection.getresponse().status == http.client.OK:
                    self.seconds = time.perf_counter() - self.begun
                    return
            except (OSError, http.client.HTTPException):
                continue
            finally:
                connection.close()


def _end_of(log: Path) -> str:
    text = log.read_text(errors="replace").strip()
    return f"The end of its log:\n{text[-2000:]}" if text else "Its log is empty."
