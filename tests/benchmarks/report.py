"""The report of a benchmark: one table for people and one JSON file for programs."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from tests.benchmarks.processes import MIB
from tests.benchmarks.questions import ASKED_RATIOS
from tests.benchmarks.subject import REPEATING, ROTATING

__all__ = ["print_report", "summarize"]

SIXTEEN = "16 connections"


def summarize(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Medians over runs with their spread: ``{question: {patterns: {p50, p50_least, p50_most, p99, size, ...}}}``."""
    questions: dict[str, Any] = {}
    for name, by_patterns in runs[0]["latency"].items():
        for patterns in by_patterns:
            each = [run["latency"][name][patterns] for run in runs]
            p50 = [one["p50"] for one in each]
            questions.setdefault(name, {})[patterns] = {
                "p50": statistics.median(p50),
                "p50_least": min(p50),
                "p50_most": max(p50),
                "p99": statistics.median(one["p99"] for one in each),
                "count": sum(one["count"] for one in each),
                "size": each[-1]["size"],
            }
    per_second = {}
    for patterns in (ROTATING, REPEATING):
        rates = [run["listings_per_second"][patterns] for run in runs]
        per_second[patterns] = {"median": statistics.median(rates), "least": min(rates), "most": max(rates)}
    cold = {
        name: {"median": statistics.median(values), "least": min(values), "most": max(values)}
        for name in runs[0].get("cold", {})
        if (values := [run["cold"][name] for run in runs])
    }
    memory = statistics.median(run["resident"] for run in runs)
    return {"questions": questions, "listings_per_second": per_second, "cold": cold, "resident": memory}


def print_report(results: dict[str, Any]) -> None:
    """Print everything that was measured."""
    console = Console(width=140, highlight=False)
    runs = results["runs"]
    console.print(f"\n{results['machine']}.")
    console.print(
        f"Medians of {runs} runs (each with a server of its own), their spread in brackets. A pattern that rotates "
        "is a different one each time; one that repeats is always the same. Ratio: the real broker's p50 for the "
        "same question over ours.\n"
    )
    console.print(_latency_table(results))
    console.print(_other_table(results))
    if results.get("http"):
        console.print(_http_table(results["http"]))
    if results.get("crowd"):
        _print_crowd(console, results["crowd"])
    if results.get("client"):
        _print_client(console, results["client"])
    if results.get("reconnects"):
        _print_reconnects(console, results["reconnects"])


def _latency_table(results: dict[str, Any]) -> Table:
    table = Table("topics", "question", "patterns", title="One connection", title_justify="left")
    for head in ("p50 ms", "spread", "p99 ms", "bytes", "broker p50 ms", "ratio", "asked"):
        table.add_column(head, justify="right")
    for size_text, subjects in results["sizes"].items():
        ours, real = subjects.get("broker-core"), subjects.get("pulsar")
        shown = ours or real
        for name, by_patterns in shown["questions"].items():
            for patterns in by_patterns:
                mine = ours["questions"][name][patterns] if ours else None
                theirs = real["questions"][name][patterns] if real else None
                asked = ASKED_RATIOS.get(int(size_text), {}).get(name)
                table.add_row(
                    f"{int(size_text):,}",
                    name,
                    patterns if len(by_patterns) > 1 else "",
                    _ms(mine["p50"]) if mine else "",
                    f"[{_ms(mine['p50_least'])} .. {_ms(mine['p50_most'])}]" if mine else "",
                    _ms(mine["p99"]) if mine else "",
                    f"{shown['questions'][name][patterns]['size']:,}",
                    _ms(theirs["p50"]) if theirs else "",
                    f"{theirs['p50'] / mine['p50']:,.0f}x" if mine and theirs else "",
                    f"{asked:,.0f}x" if asked else "",
                )
        table.add_section()
    return table


def _other_table(results: dict[str, Any]) -> Table:
    table = Table("topics", "what", title="Throughput, cold requests, memory", title_justify="left")
    for head in ("broker-core", "spread", "broker", "ratio", "asked"):
        table.add_column(head, justify="right")
    for size_text, subjects in results["sizes"].items():
        size, ours, real = int(size_text), subjects.get("broker-core"), subjects.get("pulsar")
        asked = ASKED_RATIOS.get(size, {}).get(SIXTEEN)
        for patterns in (ROTATING, REPEATING):
            mine = ours["listings_per_second"][patterns] if ours else None
            theirs = real["listings_per_second"][patterns] if real else None
            table.add_row(
                f"{size:,}",
                f"listings a second on {SIXTEEN}, {patterns}",
                f"{mine['median']:,.0f}" if mine else "",
                f"[{mine['least']:,.0f} .. {mine['most']:,.0f}]" if mine else "",
                f"{theirs['median']:,.1f}" if theirs else "",
                f"{mine['median'] / theirs['median']:,.0f}x" if mine and theirs else "",
                f"{asked:,.0f}x" if asked else "",
            )
        for name, value in (ours or {}).get("cold", {}).items():
            spread = f"[{_ms(value['least'])} .. {_ms(value['most'])}]"
            table.add_row(f"{size:,}", f"{name}, ms", _ms(value["median"]), spread, "", "", "")
        if ours:
            table.add_row(f"{size:,}", "import, s", f"{subjects['import_seconds']:.1f}", "", "", "", "")
        for name, seconds in results["floor"][size_text].items():
            what = f"the client alone reading the answer to {name}, ms"
            table.add_row(f"{size:,}", what, _ms(seconds), "", "", "", "")
        memory = [f"{one['resident'] / MIB:,.0f}" if one else "" for one in (ours, real)]
        table.add_row(f"{size:,}", "resident after the questions, MiB", memory[0], "", memory[1], "", "")
        table.add_section()
    return table


def _http_table(by_size: dict[str, Any]) -> Table:
    """One column a size. The client alone: a process that reads the same bytes from a socket."""
    table = Table("what", title="Over HTTP", title_justify="left")
    for size_text in by_size:
        table.add_column(f"{int(size_text):,} topics", justify="right")
    rows: dict[str, Callable[[dict[str, Any]], str]] = {
        "all as text, p50 ms": lambda one: _ms(one["text_p50"]),
        "all as text, MB/s": lambda one: f"{one['text_bytes'] / one['text_p50'] / 1e6:,.0f}",
        "the client alone, MB/s": lambda one: f"{one['text_bytes'] / one['floor_seconds'] / 1e6:,.0f}",
        "CPU time of the server for it, ms": lambda one: _ms(one["text_cpu"]),
        "resident before it, MiB": lambda one: f"{one['resident_before'] / MIB:,.0f}",
        "more with four such clients at once, MiB": lambda one: f"{_growth(one) / MIB:,.0f}",
        "not modified (304), p50 ms": lambda one: _ms(one["unchanged_p50"]),
        "not modified (304), p99 ms": lambda one: _ms(one["unchanged_p99"]),
        "a page while names come and go, p50 ms": lambda one: _ms(one["page_p50"]),
        "a page while names come and go, p99 ms": lambda one: _ms(one["page_p99"]),
        "CPU time of the server for it, and for the changes, ms": lambda one: _ms(one["page_cpu"]),
        "pages": lambda one: f"{one['pages']:,} of {one['page_limit']:,} names",
        "changes meanwhile": lambda one: f"{one['changes']:,}",
        "names twice, names missed": lambda one: f"{one['twice']}, {one['missed']}",
    }
    for what, shown in rows.items():
        table.add_row(what, *(shown(one) for one in by_size.values()))
    return table


def _growth(one: dict[str, Any]) -> int:
    growth: int = max(0, one["resident_peak"] - one["resident_before"])
    return growth


def _print_crowd(console: Console, result: dict[str, Any]) -> None:
    outcomes = ", ".join(f"{count} {what}" for what, count in sorted(result["outcomes"].items()))
    console.print(
        f"\n{result['clients']} clients asked for all of {result['topics']:,} topics at once, {result['slow']} of them "
        f"reading slowly: {outcomes}; {result['bytes'] / 1e9:.1f} GB in {result['seconds']:.0f} s; "
        f"{'all answers the same' if result['different_answers'] <= 1 else 'ANSWERS DIFFER'}. Resident "
        f"{result['resident_before'] / MIB:,.0f} MiB before, {result['resident_peak'] / MIB:,.0f} MiB at most. "
        f"{result['pings']:,} PINGs meanwhile: p50 {_ms(result['ping_p50'])} ms, p99 {_ms(result['ping_p99'])} ms, "
        f"longest {_ms(result['ping_max'])} ms (and the machine woke the asking process up to "
        f"{_ms(result['wake_up_max'])} ms late)."
    )


def _print_client(console: Console, result: dict[str, Any]) -> None:
    console.print()
    for scheme, found in result.items():
        console.print(
            f"The Python client over {scheme}: ten topics in {_ms(found['small'])} ms ({_ms(found['small_cpu'])} ms of "
            f"its CPU time); {found['topics']:,} topics in {_ms(found['all'])} ms ({_ms(found['all_cpu'])} ms), a "
            f"listing of {found['names'] / MIB:,.0f} MiB and {found['blocks']:,} blocks of Python's memory, "
            f"{found['peak'] / MIB:,.0f} MiB at most while it is read."
        )


def _print_reconnects(console: Console, result: dict[str, Any]) -> None:
    outcomes = ", ".join(f"{count:,} {what}" for what, count in sorted(result["outcomes"].items()))
    console.print(
        f"\nClients that came back at once, with tokens: {outcomes}; the last of them was in after "
        f"{max(result['seconds'].values()):.1f} s, with {result['cpu']:.1f} s of CPU time of the server. Resident "
        f"{result['resident_before'] / MIB:,.0f} MiB before, {result['resident_peak'] / MIB:,.0f} MiB at most. "
        f"{result['pings']:,} PINGs meanwhile: p50 {_ms(result['ping_p50'])} ms, p99 {_ms(result['ping_p99'])} ms, "
        f"longest {_ms(result['ping_max'])} ms (and the machine woke the asking process "
        f"{_ms(result['wake_up_p99'])} ms late at the p99)."
    )


def _ms(seconds: float) -> str:
    milliseconds = seconds * 1000
    if milliseconds < 1:
        return f"{milliseconds:.3f}"
    return f"{milliseconds:.1f}" if milliseconds < 100 else f"{milliseconds:,.0f}"
