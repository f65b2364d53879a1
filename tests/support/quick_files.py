"""Temporary files of tests in memory: nothing waits for the disk, and the kernel makes them in less time.

A PostgreSQL server alone makes three hundred files for each database. If there is no room for them, as in a container
with 64 MB of shared memory, all stays in the system's folder of temporary files.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

__all__ = ["folder_in_memory", "keep_files_in_memory"]

_GIB: Final = 1 << 30
#: What the files of a run may take, and the memory that has to be left for them and for all processes of the run.
ROOM: Final = 4 * _GIB
MEMORY: Final = 10 * _GIB
#: The memory that the processes of a container may have together, as both versions of control groups say it.
LIMITS: Final = ("memory.max", "memory/memory.limit_in_bytes")


def keep_files_in_memory() -> None:
    """Let this process and its children have their temporary files there; not if ``TMPDIR`` says something else."""
    folder = None if "TMPDIR" in os.environ else folder_in_memory()
    if folder is not None:
        os.environ["TMPDIR"] = str(folder)
        tempfile.tempdir = None  # asked anew


def folder_in_memory(
    folder: Path = Path("/dev/shm"),
    *,
    meminfo: Path = Path("/proc/meminfo"),
    groups: Path = Path("/sys/fs/cgroup"),
) -> Path | None:
    """A folder in memory that has room for the files of all tests and lets programs run; ``None`` without one."""
    try:
        there = os.statvfs(folder)
        memory = min(_memory(meminfo, groups))
    except (OSError, ValueError):
        return None
    may_be_used = os.access(folder, os.W_OK | os.X_OK) and not there.f_flag & os.ST_NOEXEC
    return folder if may_be_used and there.f_bavail * there.f_frsize >= ROOM and memory >= MEMORY else None


def _memory(meminfo: Path, groups: Path) -> Iterator[int]:
    """Bytes that may be used, by all that limits them."""
    for line in meminfo.read_text(encoding="ascii").splitlines():
        if line.startswith("MemAvailable:"):
            yield int(line.split()[1]) * 1024
    for name in LIMITS:
        limit = groups / name
        if limit.exists() and (text := limit.read_text(encoding="ascii").strip()) != "max":
            yield int(text)
