"""Programs in Java of one file: compiled once, and either run by themselves or asked for one thing after another."""

from __future__ import annotations

import fcntl
import hashlib
import json
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Final

from tests.interop.maven import CACHE
from tests.support.quick_java import QUICK_JAVA

__all__ = ["JavaProgram", "java_program"]

_COMPILER: Final = "jdk.compiler/com.sun.tools.javac.Main"


@cache
def _compiled(source: Path, jars: Path) -> Path:
    """The folder of the classes; ``java SOURCE`` compiles at each start, which takes longer than all that follows."""
    content = hashlib.sha256(jars.name.encode() + source.read_bytes()).hexdigest()[:12]
    folder = CACHE / f"classes-{source.stem}-{content}"
    with (CACHE / "classes-lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            fresh = folder.with_suffix(".new")
            shutil.rmtree(fresh, ignore_errors=True)
            command = ["java", *QUICK_JAVA, "-m", _COMPILER, "--release", "17", "-proc:none", "-nowarn"]
            command += ["-cp", ":".join(map(str, jars.glob("*.jar"))), "-d", str(fresh), str(source)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise RuntimeError(f"{source.name} does not compile:\n{done.stdout + done.stderr}")
            fresh.rename(folder)
    return folder


def java_program(source: Path, jars: Path, *options: str) -> list[str]:
    """The command that runs the program of a source file with a folder of jars; ``options`` are the JVM's."""
    return ["java", *QUICK_JAVA, *options, "-cp", f"{_compiled(source, jars)}:{jars}/*", source.stem]


class JavaProgram:
    """A running program that answers each line of JSON by one."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    @classmethod
    @contextmanager
    def running(cls, command: Sequence[str]) -> Iterator[JavaProgram]:
        """Start it; the end of its input ends it."""
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            yield cls(process)

    def ask(self, question: object) -> Any:
        """The answer to a question. Raises :exc:`RuntimeError` if the program has ended."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the program has ended by {question}")
        return json.loads(line)
