"""The figures of the benchmark: their names, units and goals, and how several rounds become one value."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

__all__ = ["FIGURES", "PARTS", "Figure", "best_of", "shown"]

MB: Final = 1e6
_MILLION: Final = 1_000_000
_TEN: Final = 10_000_000


@dataclass(frozen=True, slots=True)
class Figure:
    """One thing that is measured. ``unit``: ``ms`` and ``us`` (of seconds), ``MB`` and ``kB`` (of bytes), or none.

    ``goals`` are in this unit, by the number of topics or namespaces.
    """

    name: str
    title: str
    unit: str
    goals: Mapping[int, float] = field(default_factory=dict)

    @property
    def scale(self) -> float:
        """What a value is multiplied with to have the unit."""
        return {"ms": 1e3, "us": 1e6, "MB": 1 / MB, "kB": 1e-3}.get(self.unit, 1.0)


def _both(goal: float) -> dict[int, float]:
    return {_MILLION: goal, _TEN: goal}


#: The figures of each part of the benchmark, in the order of the tables.
PARTS: Final[Mapping[str, tuple[Figure, ...]]] = {
    "changes": (
        Figure("create cpu", "first answer and hash after a created topic, CPU", "ms", _both(1.5)),
        Figure("delete cpu", "after a deleted topic, CPU", "ms", _both(1.5)),
        Figure("property cpu", "after a changed property, CPU", "ms", _both(1.5)),
        Figure("unchanged cpu", "where nothing has changed, CPU", "ms"),
        Figure("memory", "memory for a moment, of the change that takes most", "MB", _both(8)),
        Figure("pinned memory", "kept by a held answer of the version before", "MB", _both(8)),
    ),
    "pages": (
        Figure("first page cpu", "first page of 1,000 names, CPU", "ms"),
        Figure("middle page cpu", "page from the middle, CPU", "ms"),
        Figure("page after a change cpu", "page from the middle after a created topic, CPU", "ms"),
        Figure(
            "slow readers memory", "16 readers of everything at 500 kB/s, 10 changes a second: growth", "MB"
        ),
    ),
    "questions": (
        Figure("first answer", "first answer of a server", "ms"),
        Figure("rss loaded", "resident after the first answer", "MB"),
        Figure("rss mixed", "resident after all questions", "MB", {_MILLION: 300}),
        Figure("rss most", "resident at most", "MB"),
        Figure("infix", "infix of 1,000 names, not asked before", "ms", {_MILLION: 20}),
        Figure("infix cpu", "its CPU", "ms"),
        Figure("scan", "scan without a fixed part, not asked before", "ms", {_MILLION: 60}),
        Figure("scan cpu", "its CPU", "ms"),
        Figure("range", "range of 10 names, not asked before", "ms"),
        Figure("range cpu", "its CPU", "ms"),
        Figure("remembered", "infix asked before", "ms"),
        Figure("remembered cpu", "its CPU", "ms"),
        Figure("after change", "infix asked before, after a created topic", "ms"),
        Figure("after change cpu", "its CPU", "ms"),
        Figure("selected after change", "names by two properties, after a created topic", "ms"),
        Figure("full", "everything", "ms"),
        Figure("full cpu", "its CPU", "ms"),
        Figure("floor", "the same bytes from a process that has them ready", "ms"),
        Figure("full over floor", "everything / the same bytes", "", _both(1.5)),
        Figure(
            "small cpu", "20 names, CPU of each answer", "us", dict.fromkeys((10_000, _MILLION, _TEN), 50)
        ),
    ),
    "under-change": (
        Figure("quiet range p50", "range, no changes, p50", "ms"),
        Figure("quiet range p99", "range, no changes, p99", "ms"),
        Figure("changing range p50", "range, 50 changes a second, p50", "ms"),
        Figure("changing range p99", "range, 50 changes a second, p99", "ms"),
        Figure("range p99 ratio", "p99 of ranges: changing / quiet", "", _both(3)),
        Figure("quiet same p50", "unchanged range, no changes, p50", "ms"),
        Figure("quiet same p99", "unchanged range, no changes, p99", "ms"),
        Figure("changing same p50", "unchanged range, 50 changes a second, p50", "ms"),
        Figure("changing same p99", "unchanged range, 50 changes a second, p99", "ms"),
        Figure("same p99 ratio", "p99 of unchanged ranges: changing / quiet", "", _both(3)),
        Figure("cpu per change", "CPU of the server for each change", "ms"),
        Figure("changes per second", "changes a second", ""),
        Figure("growth", "growth of the resident memory", "MB", _both(40)),
    ),
    "random": (
        Figure("changed", "topics changed at random; answers as of a fresh load", ""),
        Figure("alone", "of them alone", ""),
        Figure("looks", "comparisons with a fresh load", ""),
        Figure("cpu", "answer and hash after a change or a block, CPU, mean", "ms"),
    ),
    "restart": (
        Figure("cold ready", "first start: process start to ready", "ms"),
        Figure("cold full", "first start: first answer, everything", "ms"),
        Figure("cold range", "first start: first answer, a range", "ms"),
        Figure("warm ready", "second start: process start to ready", "ms"),
        Figure("warm full", "second start: first answer, everything", "ms", {_MILLION: 300, _TEN: 1_000}),
        Figure("warm range", "second start: first answer, a range", "ms", {_MILLION: 300, _TEN: 1_000}),
        Figure("warm cpu", "second start: CPU until the first answer", "ms"),
        Figure("snapshot bytes", "files beside the catalogue", "MB"),
    ),
    "namespaces": (
        Figure("first cpu", "first answer of each namespace, CPU", "us"),
        Figure("first seconds", "first answers of all, together", "ms"),
        Figure("rss each", "growth of the resident memory for each namespace", "kB"),
        Figure("warm cpu", "answers again, CPU", "us"),
        Figure("again ready", "second start: process start to ready", "ms"),
        Figure("again first cpu", "second start: first answer of each namespace, CPU", "us"),
    ),
}
#: All figures, by part and name.
FIGURES: Final[Mapping[tuple[str, str], Figure]] = {
    (part, figure.name): figure for part, figures in PARTS.items() for figure in figures
}
_MEMORY: Final = ("MB", "kB")


def best_of(part: str, rounds: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """One value of several rounds: of times the least (the rest is other load of the machine), of memory the most."""

    def chosen(name: str) -> Callable[..., float]:
        return max if FIGURES[part, name].unit in _MEMORY else min

    names = dict.fromkeys(name for each in rounds for name in each)
    return {name: chosen(name)([each[name] for each in rounds if name in each]) for name in names}


def shown(figure: Figure, value: float | None) -> str:
    """A value with three digits, in its unit."""
    if value is None:
        return ""
    scaled = value * figure.scale
    digits = max(0, 2 - len(str(int(abs(scaled)))) + 1) if scaled else 0
    return f"{scaled:,.{digits}f}"
