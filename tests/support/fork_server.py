"""Server that forks processes of `broker-core` with their modules imported already; run as a script: ``SOCKET``.

To import what a server needs takes ten times as long as most of what pages and tests do with it. A request is one
message of ``marshal`` (arguments, folder, environment) with three descriptors. The first answer is the process id, the
second the status of ``waitpid``. Each byte from the caller is the number of a signal; its end kills the process.
A program called ``python`` takes arguments of Python: ``-W error``, ``-c``, ``-m``, a file, or ``-``.
A process differs from one with a start of its own in what Python itself reads at a start: of the variables
``PYTHON...`` it knows ``PYTHONPATH`` alone.
"""

from __future__ import annotations

import atexit
import gc
import marshal
import os
import runpy
import selectors
import signal
import site
import socket
import struct
import sys
import sysconfig
import threading
import warnings
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Final, NoReturn

from broker_core.memory.arrow_without_pandas import keep_pandas_out

keep_pandas_out()

import pytest  # noqa: E402, F401 - pages run tests

import broker_core.client  # noqa: E402 - scripts import it
from broker_core.cli import main  # noqa: E402 - it imports Arrow
from broker_core.cli.server_process import server_process  # noqa: E402, F401 - most of it all
from broker_core.plugin_api import PROJECT  # noqa: E402
from broker_core.testing import serve  # noqa: E402, F401 - scripts too

for plugin in entry_points(group=PROJECT):
    plugin.load()

_PACKAGES: Final = sysconfig.get_path("purelib")
_NUMBER: Final = struct.Struct("=i")
_LARGEST: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class _Started:
    """A process, what becomes readable at its end, and its caller."""

    pid: int
    end: int
    caller: socket.socket


def _serve(listener: socket.socket) -> list[str] | None:
    """Fork for each request until standard input ends; the arguments in a process that was forked."""
    with selectors.DefaultSelector() as ready:
        ready.register(listener, selectors.EVENT_READ)
        ready.register(0, selectors.EVENT_READ)
        while True:
            for key, _ in ready.select():
                if key.fd == 0:
                    return None
                if key.data is None:
                    caller, _ = listener.accept()
                    request, descriptors, _, _ = socket.recv_fds(caller, _LARGEST, 3)
                    if not request:
                        caller.close()
                        continue
                    arguments, folder, environment = marshal.loads(request)
                    if (pid := os.fork()) == 0:
                        caller.close()
                        for other in {each.data for each in ready.get_map().values() if each.data}:
                            os.close(other.end)
                            other.caller.close()
                        for number, descriptor in enumerate(descriptors):
                            os.dup2(descriptor, number)
                            os.close(descriptor)
                        site.addsitedir(_PACKAGES)  # a page may have installed something
                        before = environment.get("PYTHONPATH", "").split(os.pathsep)
                        sys.path[1:1] = [entry for entry in before if entry and entry not in sys.path]
                        os.chdir(folder)
                        os.environ.clear()
                        os.environ.update(environment)
                        return list(arguments)
                    started = _Started(pid, os.pidfd_open(pid), caller)
                    ready.register(started.end, selectors.EVENT_READ, started)
                    ready.register(caller, selectors.EVENT_READ, started)
                    caller.sendall(_NUMBER.pack(pid))
                    for descriptor in descriptors:
                        os.close(descriptor)
                elif key.fd == key.data.end:
                    _, status = os.waitpid(key.data.pid, 0)
                    ready.unregister(key.data.end)
                    os.close(key.data.end)
                    if key.data.caller in ready.get_map():
                        ready.unregister(key.data.caller)
                    _answer(key.data.caller, status)
                else:
                    numbers = key.data.caller.recv(16)
                    if not numbers:
                        ready.unregister(key.data.caller)
                    for number in numbers or [signal.SIGKILL]:
                        os.kill(key.data.pid, number)


def _run_python(arguments: list[str]) -> None:
    """Run what Python would run with these arguments."""
    if arguments[:2] == ["-W", "error"]:
        warnings.simplefilter("error")
        arguments = arguments[2:]
    sys.argv = arguments
    if arguments[0] == "-m":
        sys.argv, sys.path[0] = arguments[1:], str(Path.cwd())
        # pytest warns of a plugin whose assertions it comes too late for; but for this word.
        broker_core.__doc__ = "PYTEST_DONT_REWRITE"
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        return
    module = sys.modules["__main__"] = ModuleType("__main__")
    if arguments[0] == "-c":
        sys.argv = ["-c", *arguments[2:]]
        text, name, sys.path[0] = arguments[1], "<string>", ""
    elif arguments[0] == "-":
        text, name, sys.path[0] = sys.stdin.read(), "<stdin>", ""
    else:
        module.__file__ = name = arguments[0]
        text, sys.path[0] = Path(name).read_text(encoding="utf-8"), str(Path(name).resolve().parent)
    exec(compile(text, name, "exec"), module.__dict__)


def _leave(code: object) -> NoReturn:
    """End the process as Python does, but for its modules: to take them apart copies all memory that is shared."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    if (script := vars(sys.modules["__main__"])) is not globals():
        script.clear()
    gc.collect()  # what was not closed says so now
    if isinstance(code, str):
        print(code, file=sys.stderr)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))


def _answer(caller: socket.socket, status: int) -> None:
    try:
        caller.sendall(_NUMBER.pack(status))
    except OSError:
        pass  # it has gone, with the process that it asked for
    caller.close()


if __name__ == "__main__":
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(sys.argv[1])
        listening.listen(64)
        # No thread is there after a fork, but a lock that it has then is held for ever. jemalloc sees to its own.
        names = {
            (task / "comm").read_text()
            for task in Path("/proc/self/task").iterdir()
            if task.name != str(os.getpid())
        }
        assert names <= {"jemalloc_bg_thd\n"}, f"imported modules have started threads: {names}"
        gc.collect()
        gc.freeze()
        print("ready", flush=True)
        asked = _serve(listening)
    if asked is not None:
        code: object = None
        try:
            if Path(asked[0]).name == "python":
                _run_python(asked[1:])
            else:
                sys.argv = asked
                main()
        except SystemExit as ended:
            code = ended.code
        _leave(code)
