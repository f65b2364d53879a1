"""The HTML report of a generation: coverage, differences, builder, all questions, and namespaces.

Patterns and names are foreign text. All of it is escaped. The page loads nothing and runs its own script alone, which
its content security policy says to the browser.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Final

from broker_core.quantities import counted
from broker_core_spark.batch.reports.question_table import content_policy, questions_section, read_part
from broker_core_spark.format import DOMAIN_ORDER

if TYPE_CHECKING:
    from broker_core_spark.batch.build_result import BuildResult

__all__ = ["html_page"]

#: Rows of a table. The rest is counted.
_MOST_ROWS: Final = 200
_LARGEST: Final = 50
_DOMAINS: Final = DOMAIN_ORDER[::-1]  # the usual domain first
_LONGEST: Final = 300  # characters of a text in a cell


def html_page(result: BuildResult) -> str:
    """The text of the page."""
    manifest = result.manifest
    counts = manifest.counts()
    parts = [
        f"<h1>Generation <code>{escape(manifest.id[:12])}</code></h1>",
        _coverage(result, counts),
        _differences(result),
        _build(result),
        questions_section(result, _printable),
        _section("Namespaces", _namespaces(result, counts)),
    ]
    style, script = read_part("report.css"), read_part("question_table.js")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{content_policy(style, script)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Generation {escape(manifest.id[:12])}</title><style>{style}</style></head>\n<body>\n"
        + "\n".join(parts)
        + f"\n<script>{script}</script>\n</body></html>\n"
    )


def _coverage(result: BuildResult, counts: dict[tuple[str, str], int]) -> str:
    manifest, loaded = result.manifest, result.loaded
    covered = {total.question.namespace for total in result.totals}
    topics = sum(_topics(counts, namespace, _DOMAINS) for namespace in covered)
    times = loaded.times_asked
    version = "static: it has no versions" if manifest.static else "one version of each namespace, see below"
    rows: list[tuple[str, str]] = [
        ("Generation", manifest.id),
        ("Number", str(result.number)),
        ("Catalogue", f"{result.catalogue} (id {manifest.catalogue_id}; {version})"),
        ("Topics", f"{manifest.topics:,}"),
        (
            "Questions precomputed",
            f"{len(result.totals):,} of {counted(loaded.rows, 'row', spec=',')}, {loaded.duplicates:,} repeated",
        ),
        ("Questions kept of earlier builds", f"{loaded.kept:,}"),
        ("Questions refused", f"{len(loaded.refused):,}"),
        ("Questions of unknown namespaces", f"{len(result.left_out):,}"),
        ("Properties that select", ", ".join(manifest.property_keys) or "none"),
        ("Properties that select nothing", _ignored(loaded.ignored)),
        ("Matches of all questions", f"{result.totals.matches:,}"),
        (
            "Coverage of what was asked",
            f"{_share(result.times_covered, times)} ({result.times_covered:,} of {times:,})",
        ),
        ("Namespaces with a question", f"{len(covered):,} of {len(manifest.namespaces):,}"),
        ("Topics in these", f"{topics:,} ({_share(topics, manifest.topics)})"),
        ("Repeated topics in the source", f"{result.duplicates:,}"),
        ("System topics left out", f"{result.system_topics:,}"),
        ("Rows left out", f"{result.rows_left_out:,}"),
        (
            "Segments",
            f"{len(manifest.segments):,}, {result.segments_written:,} written, {result.segments_kept:,} kept",
        ),
    ]
    return _section("Coverage", _table(("", ""), rows))


def _ignored(rows: Mapping[str, int]) -> str:
    """The properties of questions that select nothing, the most frequent first."""
    most = sorted(rows.items(), key=lambda item: -item[1])[:_LARGEST]
    return ", ".join(f"{key} ({counted(count, 'question', spec=',')})" for key, count in most) or "none"


def _differences(result: BuildResult) -> str:
    differences = result.differences
    if differences is None:
        return _section("Differences to the last generation", _table((), ()))
    numbers = differences.record(result.totals.counts)
    rows = [
        ("Last generation", differences.before),
        ("Questions added", f"{numbers['added']:,}"),
        ("Questions removed", f"{numbers['removed']:,}"),
    ]
    if differences.compared:
        rows += [
            ("Questions with other topics", f"{numbers['changed']:,}"),
            ("Questions with more topics", f"{numbers['with_more_topics']:,}"),
            ("Questions with fewer topics", f"{numbers['with_fewer_topics']:,}"),
        ]
    else:
        rows.append(("Topics of its questions", "not known: its build left no totals"))
    return _section("Differences to the last generation", _table(("", ""), rows))


def _build(result: BuildResult) -> str:
    """The builder, times and sources of a build, and the time of each step."""
    rows: list[tuple[str, str]] = []
    if result.builder is not None:
        builder = result.builder
        rows += [
            ("Built by", f"{builder}, run {builder.run}"),
            (
                "Versions",
                f"broker-core-spark {builder.version}, Spark {builder.spark}, Python {builder.python}",
            ),
            ("Spark application", builder.application or "not known"),
        ]
    rows += [
        (what, when.isoformat(sep=" ", timespec="seconds"))
        for what, when in (("Began", result.began), ("Published", result.published))
        if when is not None
    ]
    rows += [
        ("Patterns", result.patterns or "-"),
        ("Incremental", "yes" if result.incremental else "no"),
        ("Tasks", f"{result.tasks:,}{_task_times(result.task_seconds)}"),
    ]
    rows += [(f"Seconds: {step}", f"{seconds:,.1f}") for step, seconds in result.seconds.items()]
    return _section("Build", _table(("", ""), rows))


def _task_times(seconds: Sequence[float]) -> str:
    if not seconds:
        return ""
    ordered = sorted(seconds)
    return f", seconds of a processor: median {ordered[len(ordered) // 2]:.1f}, longest {ordered[-1]:.1f}"


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "-"


def _topics(counts: dict[tuple[str, str], int], namespace: str, domains: Iterable[str]) -> int:
    return sum(counts.get((namespace, domain), 0) for domain in domains)


def _namespaces(result: BuildResult, counts: dict[tuple[str, str], int]) -> str:
    asked: dict[str, int] = {}
    for total in result.totals:
        asked[total.question.namespace] = asked.get(total.question.namespace, 0) + 1
    versions = result.manifest.namespaces
    names = sorted(versions, key=lambda name: (-_topics(counts, name, _DOMAINS), name))
    rows = [
        (
            name,
            "-" if versions[name] is None else str(versions[name]),
            *(f"{counts.get((name, domain), 0):,}" for domain in _DOMAINS),
            f"{asked.get(name, 0):,}",
        )
        for name in names[:_MOST_ROWS]
    ]
    columns = ("Namespace", "Version", "#Persistent", "#Non-persistent", "#Questions")
    return _table(columns, rows, more=len(names) - len(rows))


def _section(title: str, body: str) -> str:
    return f"<h2>{escape(title)}</h2>\n{body}"


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, more: int = 0) -> str:
    """A table. Columns with a ``#`` in front of their title hold numbers."""
    if not rows:
        return '<p class="none">None.</p>'
    numbers = [column.startswith("#") for column in columns]
    head = "".join(f"<th>{escape(column.removeprefix('#'))}</th>" for column in columns)
    lines = [
        "<tr>"
        + "".join(
            f'<td class="number">{_cell(cell)}</td>' if number else f"<td>{_cell(cell)}</td>"
            for cell, number in zip(row, numbers, strict=True)
        )
        + "</tr>"
        for row in rows
    ]
    rest = f'<p class="none">And {more:,} more.</p>' if more > 0 else ""
    kind = "" if any(columns) else ' class="facts"'
    header = f"<thead><tr>{head}</tr></thead>" if any(columns) else ""
    return (
        f'<div class="wide"><table{kind}>{header}<tbody>\n'
        + "\n".join(lines)
        + f"\n</tbody></table></div>{rest}"
    )


def _cell(text: str) -> str:
    return escape(_printable(text))


def _printable(text: str) -> str:
    """A text without control characters, cut if it is long."""
    shown = text if len(text) <= _LONGEST else text[:_LONGEST] + "…"
    if shown.isprintable():
        return shown
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in shown)
