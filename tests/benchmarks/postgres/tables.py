"""Results as Markdown tables, which the documentation can show, and as a plot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.benchmarks.postgres.database import BESIDE
from tests.benchmarks.processes import MIB

__all__ = ["draw", "print_tables"]

#: Seconds, at a million topics.
GOALS = {
    "exact name": 0.001,
    "1,000 by prefix": 0.010,
    "31,000 by prefix": 0.050,
    "1,000 by two properties": 0.012,
    "1,000 by infix": 0.040,
    "unchanged hash of all": 0.002,
    "all": 1.0,
}
_LOAD_GOAL = 30.0
_BESIDE_GOAL = 1.2


def print_tables(results: dict[str, Any]) -> None:
    """Everything, to standard output."""
    settings = ", ".join(f"{name} {value}" for name, value in results["settings"].items())
    loads = " and ".join(f"{average[0]:.1f}" for average in results["load_average"])
    print(f"\n{results['machine']}. PostgreSQL: {settings}. Load average before and after: {loads}.")
    print(
        "Each p50 and p99 is that of the best of all rounds. No answer is kept: each is read from the database.\n"
    )
    _print_goals(results)
    _print_growth(results)
    _print_loads(results)
    _print_clients(results)


def _row(*cells: str) -> None:
    print("| " + " | ".join(cells) + " |")


def _head(*cells: str) -> None:
    _row(*cells)
    _row("---", *("---:" for _ in cells[1:]))


def _print_goals(results: dict[str, Any]) -> None:
    size = results["goals_at"]
    _head(f"{size:,} topics, one connection", "p50 ms", "p99 ms", "bytes", "goal, p50 ms")
    for name, figures in results["sizes"][str(size)]["questions"].items():
        goal = f"{GOALS[name] * 1000:,.0f}" if name in GOALS else ""
        _row(name, _ms(figures["p50"]), _ms(figures["p99"]), f"{figures['size']:,}", goal)
    memory = results["memory"]
    print(
        f"\nResident after that: {memory['resident'] / MIB:,.0f} MiB, {memory['peak'] / MIB:,.0f} MiB at most.\n"
    )


def _print_growth(results: dict[str, Any]) -> None:
    sizes = results["sizes"]
    names = list(dict.fromkeys(name for each in sizes.values() for name in each["questions"]))
    _head("p50, ms", *(f"{int(size):,}" for size in sizes), "largest / smallest")
    for name in names:
        p50 = [each["questions"].get(name, {}).get("p50") for each in sizes.values()]
        there = [value for value in p50 if value is not None]
        ratio = f"{there[-1] / there[0]:.1f}x" if len(there) > 1 else ""
        _row(name, *("" if value is None else _ms(value) for value in p50), ratio)
    print()


def _print_loads(results: dict[str, Any]) -> None:
    sizes = {size: each for size, each in results["sizes"].items() if each["load"]}
    if not sizes:
        return
    _head("seconds", *(f"{int(size):,}" for size in sizes))
    for name in next(iter(sizes.values()))["load"]:
        _row(name, *(f"{each['load'][name]:.1f}" for each in sizes.values()))
    for what in ("COPY into a bare table", "COPY into a table with the same indexes"):
        ratios = (each["load"]["load"] / each["load"][what] for each in sizes.values())
        _row(f"load / {what}", *(f"{ratio:.1f}x" for ratio in ratios))
    ratios = (each["load"][BESIDE] / each["load"]["load"] for each in sizes.values())
    _row(f"{BESIDE} / load", *(f"{ratio:.2f}x" for ratio in ratios))
    if "1000000" in sizes:
        print(
            f"\nA load of a million: at most {_LOAD_GOAL:.0f} s is the goal, {_BESIDE_GOAL}x of it beside as many."
        )
    print()


def _print_clients(results: dict[str, Any]) -> None:
    many = results["clients"]
    ours, theirs = many["broker-core"], many["pgbench"]
    _head(f"{many['clients']} clients, {many['question']}", "answers a second", "p50 ms", "p99 ms")
    for name, rate in (("broker-core", ours), ("pgbench -M prepared, the same SQL", theirs)):
        _row(name, f"{rate['per_second']:,.0f}", _ms(rate["p50"]), _ms(rate["p99"]))
    ratios = ", ".join(f"{ratio:.0%}" for ratio in many["ratios"])
    print(f"\nOf pgbench's answers a second, by round: {ratios} (goal: 25%).")
    if "peer" in results:
        peer = results["peer"]
        print(
            f"\n1,000 of {peer['topics']:,} by prefix: a stock broker takes {_ms(peer['broker']['p50'])} ms, "
            f"broker-core with PostgreSQL {_ms(peer['broker-core']['p50'])} ms: {peer['ratio']:,.0f}x (goal: 200x)."
        )


def draw(results: dict[str, Any], path: Path) -> None:
    """The growth as an SVG: a line for each question, both axes logarithmic."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.5, 4.5))
    axes = figure.subplots()
    sizes = results["sizes"]
    for name in dict.fromkeys(name for each in sizes.values() for name in each["questions"]):
        points = [
            (int(size), each["questions"][name]["p50"] * 1000)
            for size, each in sizes.items()
            if name in each["questions"]
        ]
        axes.plot(*zip(*points, strict=True), marker="o", label=name)
    axes.set(xscale="log", yscale="log", xlabel="topics in the namespace", ylabel="p50, milliseconds")
    axes.set_xticks([int(size) for size in sizes], [f"{int(size):,}" for size in sizes])
    axes.minorticks_off()
    axes.grid(visible=True, alpha=0.3)
    axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    figure.tight_layout()
    # The same figures give the same file; text stays text.
    with rc_context({"svg.hashsalt": "broker-core", "svg.fonttype": "none"}):
        figure.savefig(path, format="svg", metadata={"Date": None})


def _ms(seconds: float) -> str:
    milliseconds = seconds * 1000
    return f"{milliseconds:.2f}" if milliseconds < 10 else f"{milliseconds:,.1f}"
