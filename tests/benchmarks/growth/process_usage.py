"""Processor time and memory of another process, from Linux: exact times, the peak of a moment, samples."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["Grown", "cpu_seconds", "has_ended", "is_running", "memory", "watched_growth"]

_SAMPLE: Final = 0.02
_CPUCLOCK_SCHED: Final = 2


def cpu_seconds(pid: int) -> float:
    """Processor time of all threads of a process, ended ones too; to the nanosecond, unlike ``/proc/PID/stat``.

    Raises :exc:`ProcessLookupError` for one that has ended.
    """
    try:
        # The clock of a process, as clock_getcpuclockid(3) computes it.
        return time.clock_gettime((~pid << 3) | _CPUCLOCK_SCHED)
    except OSError as error:
        raise ProcessLookupError(f"process {pid} has ended") from error


def memory(pid: int, field: str = "VmRSS") -> int:
    """Bytes by a field of ``/proc/PID/status``: ``VmRSS`` (resident now), ``VmHWM`` (at most), ``RssAnon``."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except FileNotFoundError:
        lines = []
    for line in lines:
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise ProcessLookupError(f"process {pid} has ended")


def is_running(pid: int) -> bool:
    """Whether a process is there and has not ended (a zombie has)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def has_ended(pid: int, within: float = 2.0) -> bool:
    """Whether a process ends in so many seconds: its connections are closed a moment before."""
    until = time.monotonic() + within
    while is_running(pid):
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


@dataclass(slots=True)
class Grown:
    """Bytes beyond what was resident at the beginning: at most, and at the end."""

    most: int = 0
    left: int = 0


@contextmanager
def watched_growth(pid: int) -> Iterator[Grown]:
    """How the resident memory of a process grows while the block runs; the result is set at its end."""
    grown = Grown()
    before = memory(pid)
    seen = [before]
    ended = threading.Event()

    def sample() -> None:
        while not ended.wait(_SAMPLE) and is_running(pid):
            seen.append(memory(pid))

    sampler = threading.Thread(target=sample, name="memory samples", daemon=True)
    sampler.start()
    try:
        yield grown
        seen.append(memory(pid))
    finally:
        ended.set()
        sampler.join()
        grown.most, grown.left = max(seen) - before, seen[-1] - before
