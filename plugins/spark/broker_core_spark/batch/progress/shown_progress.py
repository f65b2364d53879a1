"""Progress for people: one line of a terminal that is written anew, or lines for a log."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Final, TextIO

from broker_core_spark.batch.progress.progress import SparkJob

__all__ = ["EVERY", "ProgressLines", "TerminalProgress"]

#: Seconds between two lines about one job.
EVERY: Final = 30.0
_CLEAR: Final = "\r\x1b[K"


class ProgressLines:
    """Writes a line for each step, and one about a job in it each ``every`` seconds."""

    def __init__(
        self,
        write: Callable[[str], None],
        every: float = EVERY,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._write = write
        self._every = every
        self._clock = clock
        self._written = clock()

    def step(self, name: str) -> None:
        """Write the step."""
        self._write(name)
        self._written = self._clock()

    def tasks(self, job: SparkJob, done: int, tasks: int, seconds: float) -> None:
        """Write the job, if the last line is old enough."""
        if self._clock() - self._written >= self._every:
            self._written = self._clock()
            self._write(job.state(done, tasks, seconds))


class TerminalProgress(AbstractContextManager["TerminalProgress"]):
    """The last line of a terminal; a context manager that leaves it empty."""

    def __init__(self, terminal: TextIO) -> None:
        self._terminal = terminal
        self._lock = threading.Lock()
        self._open = True

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._open = False  # a late count must not write into later output
            self._terminal.write(_CLEAR)
            self._terminal.flush()

    def step(self, name: str) -> None:
        """Show the step."""
        self._show(name)

    def tasks(self, job: SparkJob, done: int, tasks: int, seconds: float) -> None:
        """Show the job."""
        self._show(job.state(done, tasks, seconds))

    def _show(self, text: str) -> None:
        # A longer line would leave its beginning on the terminal.
        width = shutil.get_terminal_size().columns - 1
        with self._lock:
            if self._open:
                self._terminal.write(_CLEAR + text[:width])
                self._terminal.flush()
