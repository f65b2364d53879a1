"""Memory and processor time of a tree of processes, sampled: a JVM, its Python daemon, all workers."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

__all__ = ["PeakOfTree", "tree_cpu", "tree_pss"]

_INTERVAL = 0.25  # seconds between looks


def tree_pss(pid: int) -> int:
    """Bytes of a process and all that it started, pages that several share counted in parts (PSS)."""
    return sum(map(_pss, _tree(pid)))


def tree_cpu(pid: int) -> float:
    """Seconds that processors worked for a process, for what it started, and for what of that has ended."""
    ticks = 0
    for process in _tree(pid):
        try:
            fields = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        except OSError:
            continue
        ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def _tree(pid: int) -> list[int]:
    found = [pid]
    for process in found:
        try:
            for task in Path(f"/proc/{process}/task").iterdir():
                text = (task / "children").read_text(encoding="ascii")
                found += map(int, text.split())
        except OSError:
            continue  # it has ended meanwhile
    return found


def _pss(pid: int) -> int:
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


class PeakOfTree:
    """The most that this process and what it started held while a ``with`` lasted, in bytes (PSS).

    ``peak`` is that of all together, ``driver`` of this process, ``jvm`` of the largest JVM, ``worker`` of the largest
    other process.
    """

    def __init__(self) -> None:
        self.peak = self.driver = self.jvm = self.worker = 0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(_INTERVAL):
            held = {process: _pss(process) for process in _tree(os.getpid())}
            self.peak = max(self.peak, sum(held.values()))
            for process, size in held.items():
                if process == os.getpid():
                    self.driver = max(self.driver, size)
                elif _is_jvm(process):
                    self.jvm = max(self.jvm, size)
                else:
                    self.worker = max(self.worker, size)


def _is_jvm(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip() == "java"
    except OSError:
        return False
