"""The stages of a listing as spans, if the listing is traced; nothing otherwise.

A stage does not know whether anybody traces: ``with stage("filter"): ...`` costs a tenth of a microsecond if nobody
does. The tracer of a listing goes with its context (:mod:`contextvars`), and so with the tasks that it starts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Final, Protocol, Self

__all__ = ["NO_SPAN", "Span", "StageTracer", "stage", "traced_by"]


class Span(Protocol):
    """A named stretch of time, as a block, with attributes."""

    def note(self, **values: Any) -> None:
        """Add attributes; ``None`` values are left out."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...


class StageTracer(Protocol):
    """Makes the spans of one server."""

    def stage(self, name: str, values: Mapping[str, Any]) -> Span:
        """A child span of the one that is under way."""


class _NoSpan:
    """Stands for a span if nothing is traced."""

    __slots__ = ()

    def note(self, **_values: Any) -> None:
        """Drop the attributes."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End nothing."""


NO_SPAN: Final = _NoSpan()

_tracer: ContextVar[StageTracer | None] = ContextVar("broker_core_stage_tracer", default=None)


def stage(name: str, **values: Any) -> Span:
    """The span of a stage, if the running task is traced."""
    tracer = _tracer.get()
    return NO_SPAN if tracer is None else tracer.stage(name, values)


@contextmanager
def traced_by(tracer: StageTracer | None) -> Iterator[None]:
    """``with traced_by(tracer):`` the stages in this block, and in the tasks that it starts, are its spans."""
    before = _tracer.set(tracer)
    try:
        yield
    finally:
        _tracer.reset(before)
