"""Results as Markdown tables, which the documentation shows, and as a plot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tests.benchmarks.growth.figures import PARTS, Figure, shown

__all__ = ["draw", "put_into_page", "report"]

_HEADINGS: Final = {
    "changes": "One change",
    "pages": "Pages and slow readers",
    "questions": "Questions and memory",
    "under-change": "16 clients, 400 questions a second, beside changes",
    "random": "Random changes, compared with a fresh load",
    "restart": "Restart",
    "namespaces": "Many small namespaces",
}
#: In the line above the tables.
_LOAD: Final = "Load average before and after"
#: The curves of the plot: part, figure, name of the curve.
_TIMES: Final = (
    ("changes", "create cpu", "answer and hash after a change, CPU"),
    ("questions", "range cpu", "new range of 10, CPU"),
    ("questions", "infix cpu", "new infix of 1,000, CPU"),
    ("questions", "scan cpu", "new scan, CPU"),
    ("questions", "full cpu", "everything, CPU"),
    ("pages", "middle page cpu", "page from the middle, CPU"),
    ("restart", "cold full", "first answer of a first start"),
    ("restart", "warm full", "first answer of a second start"),
)
_MEMORY: Final = (
    ("questions", "rss mixed", "resident after all questions"),
    ("changes", "memory", "a change, for a moment"),
    ("changes", "pinned memory", "an old version that is held"),
    ("under-change", "growth", "growth beside 50 changes a second"),
)


def report(results: Mapping[str, Any], *, goals: bool = True) -> str:
    """All tables as Markdown: a column for each size; with two trees the figures of both, and their ratio.

    ``goals`` adds a column of what is wanted.
    """
    loads = " and ".join(f"{average[0]:.1f}" for average in results["load_average"])
    trees = ", ".join(f"{label}: {commit}" for label, commit in results["trees"].items())
    lines = [f"{results['machine']}. {_LOAD}: {loads}. {trees}.", ""]
    for part, figures in PARTS.items():
        columns = results["namespaces" if part == "namespaces" else "sizes"]
        own = {size: each for size, each in columns.items() if any(part in found for found in each.values())}
        if own:
            rows = _table(part, figures, own, list(results["trees"]))
            lines += [*(_row(*(cells if goals else cells[:-1])) for cells in rows), ""]
    return "\n".join(lines)


def put_into_page(results: Mapping[str, Any], page: Path) -> None:
    """Put all tables, and what they were measured on, into a page of the documentation in the place of its own.

    Its own are from the line that says what they were measured on to the last row of a table. Raises :exc:`ValueError`
    if the page has none.
    """
    lines = page.read_text(encoding="utf-8").split("\n")
    rows = [number for number, line in enumerate(lines) if line.startswith("| ")]
    begin = next((number for number, line in enumerate(lines) if _LOAD in line), None)
    if begin is None or not rows or rows[-1] < begin:
        raise ValueError(f"{page} has no tables of this benchmark")
    made = report(results, goals=False).rstrip("\n").split("\n")
    page.write_text("\n".join([*lines[:begin], *made, *lines[rows[-1] + 1 :]]), encoding="utf-8")


def _table(
    part: str, figures: Sequence[Figure], columns: Mapping[str, Any], labels: Sequence[str]
) -> Iterator[list[str]]:
    """The cells of each row; the last one is the goal."""
    unit = "namespaces" if part == "namespaces" else "topics"
    heads = []
    for size in columns:
        if len(labels) > 1:
            heads += [f"{int(size):,} {unit}, {label}" for label in labels] + ["ratio"]
        else:
            heads.append(f"{int(size):,} {unit}")
    yield [_HEADINGS[part], "unit", *heads, "goal"]
    yield ["---", "---", *("---:" for _ in heads), "---:"]
    for figure in figures:
        cells = []
        for each in columns.values():
            values = [each.get(label, {}).get(part, {}).get(figure.name) for label in labels]
            cells += [shown(figure, value) for value in values]
            if len(labels) > 1:
                both = all(value is not None for value in values) and values[1]
                cells.append(f"{values[0] / values[1]:.2f}x" if both else "")
        if any(cells):
            there = [figure.goals[int(size)] for size in columns if int(size) in figure.goals]
            goal = " / ".join(dict.fromkeys(f"{each:,g}" for each in there))
            yield [figure.title, figure.unit, *cells, goal]


def _row(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"


def draw(results: Mapping[str, Any], path: Path) -> None:
    """Time and memory of the first tree by the number of topics, as an SVG with logarithmic axes."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure as Drawing

    label = next(iter(results["trees"]))
    drawing = Drawing(figsize=(10, 5.4))
    left, right = drawing.subplots(1, 2)
    for axes, curves, scale, unit in ((left, _TIMES, 1e3, "milliseconds"), (right, _MEMORY, 1e-6, "MB")):
        for part, name, title in curves:
            points = [
                (int(size), each[label][part][name] * scale)
                for size, each in results["sizes"].items()
                if each[label].get(part, {}).get(name)
            ]
            if points:
                axes.plot(*zip(*points, strict=True), marker="o", label=title)
        sizes = [int(size) for size in results["sizes"]]
        axes.set(xscale="log", yscale="log", xlabel="topics in the namespace", ylabel=unit)
        axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
        axes.minorticks_off()
        axes.grid(visible=True, alpha=0.3)
        axes.legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2)
    drawing.tight_layout()
    # The same figures give the same file; text stays text.
    with rc_context({"svg.hashsalt": "broker-core", "svg.fonttype": "none"}):
        drawing.savefig(path, format="svg", metadata={"Date": None})
