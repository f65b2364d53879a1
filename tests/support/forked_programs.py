"""Processes of `broker-core` that are forked with all modules imported, for pages and servers of tests.

They start in a fifth of the time. What measures a start, or what a start imports, runs the program itself, and so do
benchmarks.
"""

from __future__ import annotations

import atexit
import marshal
import os
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import IO, Final, Self

from tests.support.left_behind import Running

__all__ = ["ForkServer", "ForkedProcess", "forked_program", "server_of_the_run", "start_programs"]

_SERVER: Final = Path(__file__).with_name("fork_server.py")
_NUMBER: Final = struct.Struct("=i")
#: What stands in place of the program: it imports nothing that is written in Python, so it starts in 10 ms.
_CALLER: Final = """#!{python} -ISs
import _signal, _socket, marshal, os, sys

def run():
    variables = dict(os.environ)
    of_python = {{k: v for k, v in variables.items() if k.startswith("PYTHON") and k != "PYTHONPATH"}}
    if of_python != {variables!r}:
        return None
    server = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        server.connect({address!r})
    except OSError:
        return None
    numbers = b"".join(number.to_bytes(4, sys.byteorder) for number in range(3))
    request = marshal.dumps((sys.argv, os.getcwd(), variables))
    server.sendmsg([request], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, numbers)])
    if not server.recv(4):
        return None
    for number in (_signal.SIGTERM, _signal.SIGINT, _signal.SIGHUP, _signal.SIGUSR1):
        _signal.signal(number, lambda number, _: server.send(bytes([number])))
    return int.from_bytes(server.recv(4), sys.byteorder)

status = run()
if status is None:
    os.execv({own!r}, [{own!r}, *sys.argv[1:]])
code = os.waitstatus_to_exitcode(status)
if code < 0:
    if -code != _signal.SIGKILL:
        _signal.signal(-code, _signal.SIG_DFL)
    os.kill(os.getpid(), -code)
os._exit(code)
"""


class ForkedProcess:
    """A process of :class:`ForkServer`, with the methods of ``subprocess.Popen`` that servers of tests need."""

    def __init__(self, connection: socket.socket, pid: int, stdout: IO[bytes]) -> None:
        self.pid = pid
        self.stdout = stdout
        self.returncode: int | None = None
        self._connection = connection

    def wait(self, timeout: float | None = None) -> int:
        """The exit code, below 0 for a signal; :exc:`subprocess.TimeoutExpired` after ``timeout`` seconds."""
        if self.returncode is None:
            ready, _, _ = select.select([self._connection], [], [], timeout)
            if not ready:
                raise subprocess.TimeoutExpired(["broker-core"], timeout or 0.0)
            with self._connection as connection:
                (status,) = _NUMBER.unpack(connection.recv(_NUMBER.size))
            self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def poll(self) -> int | None:
        """The exit code of a process that has ended."""
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def send_signal(self, number: int) -> None:
        """Send a signal to a process that runs."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)


class ForkServer:
    """The process that imports what `broker-core` has in the environment of a Python program; a context manager."""

    def __init__(self, python: Path, environment: dict[str, str] | None = None) -> None:
        self._python = python
        self._environment = dict(os.environ if environment is None else environment)
        #: The folder of its socket, which ends with it.
        self.folder = Path(tempfile.mkdtemp(prefix="forks-"))
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def _address(self) -> str:
        return str(self.folder / "s")

    def __enter__(self) -> Self:
        # Threads of OpenBLAS would not be there after a fork.
        environment = self._environment | {"OPENBLAS_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            [self._python, _SERVER, self._address],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"ready\n"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            with self._process as process:
                assert process.stdin is not None
                process.stdin.close()
            self._process = None
        shutil.rmtree(self.folder, ignore_errors=True)

    def serve(
        self,
        command: Sequence[str],
        stderr: IO[bytes],
        environment: Mapping[str, str],
        folder: Path | None = None,
    ) -> ForkedProcess:
        """Start ``broker-core serve`` in a folder, by default that of this process; its standard output is a pipe."""
        reading, writing = os.pipe()
        stdout = os.fdopen(reading, "rb")
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.connect(self._address)
            with Path(os.devnull).open("rb") as nothing:
                request = marshal.dumps((list(command), str(folder or Path.cwd()), dict(environment)))
                socket.send_fds(connection, [request], [nothing.fileno(), writing, stderr.fileno()])
            (pid,) = _NUMBER.unpack(connection.recv(_NUMBER.size))
        except BaseException:
            connection.close()
            stdout.close()
            raise
        finally:
            os.close(writing)
        return ForkedProcess(connection, pid, stdout)

    def write_program(self, folder: Path, name: str) -> Path:
        """Write a program that asks this server: ``broker-core``, or ``python`` for the arguments that `fork_server.py`
        knows. It starts that of the environment if variables of Python are others, or the server has ended."""
        own = self._python if name == "python" else self._python.parent / name
        variables = {
            name: value
            for name, value in self._environment.items()
            if name.startswith("PYTHON") and name != "PYTHONPATH"
        }
        program = folder / name
        program.write_text(
            _CALLER.format(python=self._python, address=self._address, own=str(own), variables=variables)
        )
        program.chmod(0o755)
        return program


@cache
def server_of_the_run() -> ForkServer:
    """The server of the environment that runs the tests; it ends with this process."""
    before = Running()
    server = ForkServer(Path(sys.executable))
    atexit.register(server.__exit__, None, None, None)
    server.__enter__()
    before.lasts()
    return server


@cache
def forked_program(name: str) -> str:
    """The path of ``broker-core`` or ``python`` that stands for that of the environment of the tests, with all imported
    that `broker-core` needs."""
    server = server_of_the_run()
    return str(server.write_program(server.folder, name))


def start_programs() -> None:
    """Start the server of the run, and write its programs, before processes are forked that share them."""
    for name in ("broker-core", "python"):
        forked_program(name)
