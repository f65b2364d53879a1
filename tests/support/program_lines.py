"""Reading a program's standard output line by line, and waiting for a line."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import IO, Protocol

__all__ = ["ProgramLines"]


class _Program(Protocol):
    @property
    def pid(self) -> int: ...

    @property
    def stdout(self) -> IO[bytes] | None: ...


class ProgramLines:
    """Reads the standard output of a process (opened as a binary pipe) in a thread, and keeps all lines."""

    def __init__(self, process: _Program) -> None:
        self._process = process
        self._lines: list[str] = []
        self._ended = False
        self._news = threading.Condition()
        threading.Thread(target=self._read, name=f"lines of {process.pid}", daemon=True).start()

    def all(self) -> list[str]:
        """What was said so far."""
        with self._news:
            return list(self._lines)

    def wait_for(self, wanted: Callable[[str], bool], timeout: float, *, what: str) -> str:
        """The first line that is ``wanted``, said already or within ``timeout`` seconds."""

        def found(lines: list[str]) -> str | None:
            return next(filter(wanted, lines), None)

        return self.wait_until(found, timeout, what=what)

    def wait_until(self, found: Callable[[list[str]], str | None], timeout: float, *, what: str) -> str:
        """The first true value that ``found`` makes of all lines so far; :exc:`AssertionError` when too late."""
        deadline = time.monotonic() + timeout
        with self._news:
            while True:
                value = found(self._lines)
                if value:
                    return value
                left = deadline - time.monotonic()
                if self._ended or left <= 0:
                    why = "the program ended" if self._ended else f"not within {timeout:g} s"
                    raise AssertionError(f"{why}: {what}; it said {self._lines[-50:]}")
                self._news.wait(left)

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                with self._news:
                    self._lines.append(line.decode().rstrip("\n"))
                    self._news.notify_all()
        with self._news:
            self._ended = True
            self._news.notify_all()
