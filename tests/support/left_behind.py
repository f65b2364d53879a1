"""What tests leave running: threads, tasks and processes, which would take part in the tests after them.

Such a thread draws random numbers while another test counts them, and such a process writes into a folder that is gone.
The file that leaves something fails, not the one that suffers from it.
"""

from __future__ import annotations

import asyncio
import asyncio.runners
import gc
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

__all__ = ["Running", "note_cancelled_tasks"]

#: Seconds that an end which has begun may take.
_PATIENCE: Final = 20.0
#: Threads that serve the whole process, from their first use on: what frees large objects.
_LASTING_THREADS: Final = frozenset({"letting-go"})
#: Words of the command lines of processes that live as long as this one, which they serve.
_LASTING: Final = (b"multiprocessing.resource_tracker", b"multiprocessing.forkserver")

_THREADS_OF_THIS: Final = Path("/proc/self/task")
_cancelled: list[str] = []
#: What belongs to fixtures of the whole run, whichever file was the first to ask for them.
_of_the_run: set[threading.Thread | int] = set()


def note_cancelled_tasks() -> None:
    """Note each task that is there when its loop is closed, which asyncio cancels without a word."""
    cancel: Callable[[asyncio.AbstractEventLoop], None] = asyncio.runners._cancel_all_tasks  # type: ignore[attr-defined]

    def noting(loop: asyncio.AbstractEventLoop) -> None:
        _cancelled.extend(f"the task {task}" for task in asyncio.all_tasks(loop) if _waits(task))
        cancel(loop)

    asyncio.runners._cancel_all_tasks = noting  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True)
class Running:
    """The threads of this process and the processes that it has started, at one time."""

    threads: frozenset[threading.Thread] = field(default_factory=lambda: frozenset(threading.enumerate()))
    processes: frozenset[int] = field(default_factory=lambda: frozenset(_processes()))

    def left(self) -> list[str]:
        """What has come since and stays, in words; what is about to end is waited for."""
        tasks, _cancelled[:] = _cancelled[:], []
        end = time.monotonic() + _PATIENCE
        if any(self._come_since()):
            gc.collect()  # the threads of a pool that nobody has any more end with it
        while (found := list(self._come_since())) and time.monotonic() < end:
            time.sleep(0.005)
        return tasks + found

    def lasts(self) -> None:
        """Take what has come since for something of the whole run."""
        _of_the_run.update(set(threading.enumerate()) - self.threads, set(_processes()) - self.processes)

    def _come_since(self) -> Iterator[str]:
        for thread in set(threading.enumerate()) - self.threads - _of_the_run:
            if thread.name not in _LASTING_THREADS:
                yield f"the thread {thread.name}"
        for process in set(_processes()) - self.processes - _of_the_run:
            command = _read(Path(f"/proc/{process}/cmdline"))
            # Nothing is known of one that has ended, and waits for its parent.
            if command and not any(words in command for words in _LASTING):
                yield f"the process {process}: {command.replace(bytes(1), b' ').decode(errors='replace')}"


def _waits(task: asyncio.Task[Any]) -> bool:
    """Whether a task waits for something that has not come, so that it would not end by itself at its next turn."""
    awaited = getattr(task, "_fut_waiter", None)
    return awaited is not None and not awaited.done()


def _processes() -> Iterator[int]:
    for thread in _THREADS_OF_THIS.iterdir():
        yield from map(int, _read(thread / "children").split())


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # it has just ended
        return b""
