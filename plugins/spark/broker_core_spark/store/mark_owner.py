"""The owner of a mark: the process that wrote it. On its own machine it can be asked whether it lives."""

from __future__ import annotations

import json
import os
import socket
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

__all__ = ["MarkOwner", "boot_seconds", "user_name"]

_PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class MarkOwner:
    """A process by its host, its number and its start, with the run that it does.

    ``boot`` and ``namespace`` are those of the kernel: a number of a process means something in one namespace of one
    boot. ``started`` is in ticks since the boot. All three are empty where there is no ``/proc``.
    """

    host: str
    pid: int
    user: str
    run: str
    began: str
    boot: str = ""
    namespace: str = ""
    started: str = ""

    @classmethod
    def this_process(cls, run: str) -> MarkOwner:
        """The owner that this process is."""
        began = datetime.now(UTC).isoformat(timespec="seconds")
        pid = os.getpid()
        return cls(
            socket.gethostname(), pid, user_name(), run, began, _boot(), _namespace(), _started(pid) or ""
        )

    @classmethod
    def parse(cls, data: bytes | None) -> MarkOwner | None:
        """The owner in a mark. ``None`` for a mark without one, such as those of earlier releases."""
        try:
            values = json.loads(data or b"")
            owner = cls(**values)
        except (ValueError, TypeError, RecursionError):
            return None
        texts = [value for key, value in asdict(owner).items() if key != "pid"]
        return owner if type(owner.pid) is int and all(type(text) is str for text in texts) else None

    def to_bytes(self) -> bytes:
        """The content of a mark."""
        return json.dumps(asdict(self), sort_keys=True).encode()

    def is_alive(self) -> bool | None:
        """Whether the process lives. ``None`` where it cannot be asked: on another machine or in another container."""
        if not self.started or (self.boot, self.namespace) != (_boot(), _namespace()):
            return None
        return _started(self.pid) == self.started

    def __str__(self) -> str:
        return f"run {self.run} of {self.user} on {self.host}, process {self.pid}, since {self.began}"


def user_name() -> str:
    """The name of this process's user, or its number where the system has no name for it."""
    try:
        import pwd

        return pwd.getpwuid(os.getuid()).pw_name
    except (KeyError, ImportError):
        return f"uid {os.getuid()}" if hasattr(os, "getuid") else "somebody"


def boot_seconds() -> float:
    """Seconds of a clock that goes on while the machine sleeps."""
    import time

    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if clock is None else time.clock_gettime(clock)


def _boot() -> str:
    try:
        return (_PROC / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _namespace() -> str:
    try:
        return str((_PROC / "self/ns/pid").readlink())
    except OSError:
        return ""


def _started(pid: int) -> str | None:
    """The start of a process in ticks, or ``None`` without such a process, or with one that has ended."""
    try:
        text = (_PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()  # behind the name, which may have spaces
    return fields[19] if len(fields) > 19 and fields[0] not in ("Z", "X") else None
