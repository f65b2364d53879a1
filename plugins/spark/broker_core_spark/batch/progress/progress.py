"""The interface of a build's progress, and the progress that jobs of a thread are reported to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final, Protocol

from broker_core.quantities import counted

__all__ = ["Progress", "SparkJob", "current_progress", "showing"]

_UNITS: Final = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"))
#: Less than this share or this many seconds say nothing about the rest.
_LEAST_SHARE: Final = 0.02
_LEAST_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class SparkJob:
    """The work of a Spark job: a title, and the amounts that its tasks share, such as ``{"segments": 40}``.

    ``size`` is in bytes, 0 if unknown. Tasks are of about equal work.
    """

    title: str
    amounts: Mapping[str, int] = field(default_factory=dict)
    size: int = 0

    def __str__(self) -> str:
        parts = [f"{count:,} {what}" for what, count in self.amounts.items()]
        if self.size:
            parts.append(_bytes(self.size))
        return f"{self.title}: {', '.join(parts)}" if parts else self.title

    def state(self, done: int, tasks: int, seconds: float) -> str:
        """One line about the job after ``seconds``, with its rate and the time that is left."""
        share = done / tasks if tasks else 0.0
        parts = [f"{self}: {done:,} of {counted(tasks, 'task', spec=',')}"]
        if self.size and seconds > 0:
            parts.append(f"{_bytes(self.size * share)} done, {_bytes(self.size * share / seconds)}/s")
        if share >= _LEAST_SHARE and seconds >= _LEAST_SECONDS:
            parts.append(f"about {seconds * (1 - share) / share:,.0f} s left")
        return ", ".join(parts)


class Progress(Protocol):
    """Gets reports of a build's work. Calls come from several threads and must not block."""

    def step(self, name: str) -> None:
        """A step begins: ``patterns``, ``catalogue``, ``segments`` or ``publish``."""

    def tasks(self, job: SparkJob, done: int, tasks: int, seconds: float) -> None:
        """``done`` of ``tasks`` tasks of a job of Spark are done ``seconds`` after its beginning."""


_CURRENT: ContextVar[Progress | None] = ContextVar("progress", default=None)


@contextmanager
def showing(progress: Progress | None) -> Iterator[None]:
    """Report the jobs of this thread to ``progress``, if there is one, within the block."""
    token = _CURRENT.set(progress)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def current_progress() -> Progress | None:
    """The progress to which the jobs of this thread are reported, or ``None`` without one."""
    return _CURRENT.get()


def _bytes(size: float) -> str:
    for unit, name in _UNITS:
        if size >= unit:
            return f"{size / unit:.1f} {name}"
    return f"{size:.0f} B"
