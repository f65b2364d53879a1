"""Whether another process runs, and how its memory grows meanwhile, from Linux."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.benchmarks.processes import resident

__all__ = ["Grown", "has_ended", "is_running", "watched_growth"]

_SAMPLE: Final = 0.02


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
    before = resident(pid)
    seen = [before]
    ended = threading.Event()

    def sample() -> None:
        with suppress(ProcessLookupError):
            while not ended.wait(_SAMPLE):
                seen.append(resident(pid))

    sampler = threading.Thread(target=sample, name="memory samples", daemon=True)
    sampler.start()
    try:
        yield grown
        seen.append(resident(pid))
    finally:
        ended.set()
        sampler.join()
        grown.most, grown.left = max(seen) - before, seen[-1] - before
