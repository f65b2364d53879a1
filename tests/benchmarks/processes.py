"""The present and the highest resident memory of a process, and its CPU time, from Linux."""

from __future__ import annotations

import os
import platform
import time
from pathlib import Path

__all__ = ["cpu_seconds", "machine", "resident", "resident_peak"]

MIB = 1024 * 1024
_CPUCLOCK_SCHED = 2


def resident(pid: int) -> int:
    """Resident memory of a process, in bytes."""
    return _status(pid, "VmRSS")


def resident_peak(pid: int) -> int:
    """The most that was resident since the process started, in bytes."""
    return _status(pid, "VmHWM")


def cpu_seconds(pid: int) -> float:
    """The CPU time of a process so far: of all of its threads, ended ones too, with their system calls.

    Raises :exc:`ProcessLookupError` for a process that has ended, as all functions here do.
    """
    try:
        # The clock of a process, as clock_getcpuclockid(3) computes it.
        return time.clock_gettime((~pid << 3) | _CPUCLOCK_SCHED)
    except OSError as error:
        raise ProcessLookupError(f"process {pid} has ended") from error


def _status(pid: int, field: str) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        lines = []
    for line in lines:
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise ProcessLookupError(
        f"process {pid} has ended"
    )  # what is left of it until it is waited for has no memory


def machine() -> str:
    """This machine in words: cores, memory, processor, system, Python."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1024**3
    processor = platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                processor = line.partition(":")[2].strip()
                break
    cores = len(os.sched_getaffinity(0))
    return (
        f"{cores} cores ({processor}), {memory:.0f} GiB of memory, {platform.system()} {platform.release()}, "
        f"Python {platform.python_version()}; client, server and broker on the same machine, over loopback"
    )
