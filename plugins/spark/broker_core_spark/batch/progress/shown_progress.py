"""Progress for people: one line of a terminal that is written anew, or lines for a log."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TextIO

from broker_core_spark.batch.progress.progress import SparkJob

__all__ = ["EVERY", "ProgressLines", "terminal_progress"]

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


@contextmanager
def terminal_progress(terminal: TextIO) -> Iterator[ProgressLines]:
    """Progress in the last line of a terminal, which is empty afterwards."""
    lock = threading.Lock()
    is_open = True

    def show(text: str, *, last: bool = False) -> None:
        nonlocal is_open
        with lock:
            if is_open:  # a late count must not write into later output
                is_open = not last
                # A longer line would leave its beginning on the terminal.
                terminal.write(_CLEAR + text[: shutil.get_terminal_size().columns - 1])
                terminal.flush()

    try:
        yield ProgressLines(show, every=0)
    finally:
        show("", last=True)
