"""Measured results beside their goals, one line each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

__all__ = ["Row", "lines", "met", "of"]

#: ``what``, ``value`` and ``unit``; ``at_most`` or ``at_least`` where there is a goal.
Row = dict[str, Any]

#: The sizes that the goals of a batch are for: (topics, patterns), and its goals.
_BATCHES: Final[Mapping[tuple[int, int], Mapping[str, float]]] = {
    (5_000_000, 1020): {"seconds": 45, "gib": 2},
    (2_000_000, 84_000): {"seconds": 250, "gib": 1.8},
    (20_000_000, 200): {"gib": 10},
}
#: With fewer names the comparison is one of fixed costs.
_JOIN_TOPICS: Final = 200_000


def of(results: Mapping[str, Any]) -> list[Row]:
    """The rows of a result of ``make bench-spark``."""
    batch = results["batch"]
    goal: Mapping[str, float] = _BATCHES.get((batch["topics"], batch["patterns"]), {})
    size = f"{batch['topics']:,} topics x {batch['patterns']:,} patterns"
    rows: list[Row] = [
        {"what": f"job, {size}", "value": batch["job_seconds"], "unit": "s"}
        | ({"at_most": goal["seconds"]} if "seconds" in goal else {}),
        {"what": "resident, JVM and Python together", "value": batch["resident_gib"], "unit": "GiB"}
        | ({"at_most": goal["gib"]} if "gib" in goal else {}),
    ]
    if "ratio" in results:
        ratio = results["ratio"]
        what = f"times the rlike cross join, {ratio['topics']:,} x {ratio['patterns']:,}"
        bound = {"at_least": 20} if ratio["topics"] >= _JOIN_TOPICS else {}
        rows.append({"what": what, "value": ratio["ratio"], "unit": "x"} | bound)
        rows.append(
            {
                "what": "both have the same counts",
                "value": float(ratio["same_counts"]),
                "unit": "",
                "at_least": 1,
            }
        )
    return [*rows, *results.get("order", ()), *results.get("increments", ()), *results.get("serving", ())]


def met(row: Row) -> bool | None:
    """Whether the goal of a row is met; ``None`` without one."""
    if "at_most" in row:
        return bool(row["value"] <= row["at_most"])
    return bool(row["value"] >= row["at_least"]) if "at_least" in row else None


def lines(rows: Iterable[Row]) -> list[str]:
    """A table for people."""
    shown = []
    for row in rows:
        fulfilled = met(row)
        bound = "at most" if "at_most" in row else "at least"
        goal = "" if fulfilled is None else f"{bound} {row.get('at_most', row.get('at_least')):g}"
        mark = "" if fulfilled is None else "yes" if fulfilled else "NO"
        shown.append(f"{row['what']:60} {row['value']:12.3f} {row['unit']:6} {goal:14} {mark}".rstrip())
    return [f"{'':60} {'measured':>12} {'':6} {'goal':14} met", *shown]
