"""The HTML report of a generation: coverage, differences, builder, all questions, and namespaces.

Patterns and names are foreign text. All of it is escaped. The page loads nothing and runs its own script alone, which
its content security policy says to the browser.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from html import escape
from statistics import median_high
from typing import Final

from broker_core.quantities import counted
from broker_core_spark.batch.build_result import BuildResult
from broker_core_spark.batch.reports.question_table import (
    content_policy,
    questions_section,
    read_part,
    shown_text,
)
from broker_core_spark.format import DOMAIN_ORDER

__all__ = ["html_page"]

#: Rows of a table. The rest is counted.
_MOST_ROWS: Final = 200
_LARGEST: Final = 50
_DOMAINS: Final = DOMAIN_ORDER[::-1]  # the usual domain first
_NONE: Final = '<p class="none">None.</p>'


def html_page(result: BuildResult) -> str:
    """The text of the page."""
    manifest = result.manifest
    counts = manifest.counts()
    topics = {name: sum(counts.get((name, domain), 0) for domain in _DOMAINS) for name in manifest.namespaces}
    style, script = read_part("report.css"), read_part("question_table.js")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{content_policy(style, script)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Generation {escape(manifest.id[:12])}</title><style>{style}</style></head>\n<body>\n"
        f"<h1>Generation <code>{escape(manifest.id[:12])}</code></h1>\n"
        f"<h2>Coverage</h2>\n{_coverage(result, topics)}\n"
        f"<h2>Differences to the last generation</h2>\n{_differences(result)}\n"
        f"<h2>Build</h2>\n{_build(result)}\n"
        f"{questions_section(result)}\n"
        f"<h2>Namespaces</h2>\n{_namespaces(result, counts, topics)}"
        f"\n<script>{script}</script>\n</body></html>\n"
    )


def _coverage(result: BuildResult, topics_of: Mapping[str, int]) -> str:
    manifest, loaded = result.manifest, result.loaded
    covered = {question.namespace for question in result.totals.questions}
    topics = sum(topics_of[namespace] for namespace in covered)
    ignored = (
        f"{key} ({counted(count, 'question', spec=',')})"
        for key, count in Counter(loaded.ignored).most_common(_LARGEST)
    )
    times = loaded.total_times
    version = "static: it has no versions" if manifest.static else "one version of each namespace, see below"
    rows = [
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
        ("Properties that select nothing", ", ".join(ignored) or "none"),
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
    return _facts(rows)


def _differences(result: BuildResult) -> str:
    differences = result.differences
    if differences is None:
        return _NONE
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
    return _facts(rows)


def _build(result: BuildResult) -> str:
    """The builder, times and sources of a build, and the time of each step."""
    builder, seconds = result.builder, result.task_seconds
    processor = (
        f", seconds of a processor: median {median_high(seconds):.1f}, longest {max(seconds):.1f}"
        if seconds
        else ""
    )
    return _facts(
        [
            (
                "Built by",
                f"{builder['user']} on {builder['host']}, process {builder['pid']}, run {builder['run']}",
            ),
            (
                "Versions",
                f"broker-core-spark {builder['version']}, Spark {builder['spark']}, Python {builder['python']}",
            ),
            ("Spark application", builder["application"] or "not known"),
            ("Began", result.began.isoformat(sep=" ", timespec="seconds")),
            ("Published", result.published.isoformat(sep=" ", timespec="seconds")),
            ("Patterns", result.patterns or "-"),
            ("Incremental", "yes" if result.incremental else "no"),
            ("Tasks", f"{result.tasks:,}{processor}"),
            *((f"Seconds: {step}", f"{seconds:,.1f}") for step, seconds in result.seconds.items()),
        ]
    )


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "-"


def _namespaces(result: BuildResult, counts: Mapping[tuple[str, str], int], topics: Mapping[str, int]) -> str:
    """A row for each namespace, those with the most topics first."""
    if not topics:
        return _NONE
    questions_of = Counter(question.namespace for question in result.totals.questions)
    names = sorted(topics, key=lambda name: (-topics[name], name))
    lines = []
    for name in names[:_MOST_ROWS]:
        version = result.manifest.namespaces[name]
        numbers = [*(counts.get((name, domain), 0) for domain in _DOMAINS), questions_of[name]]
        cells = "".join(f'<td class="number">{number:,}</td>' for number in numbers)
        lines.append(f"<tr>{_cell(name)}{_cell('-' if version is None else str(version))}{cells}</tr>")
    rest = f'<p class="none">And {len(names) - len(lines):,} more.</p>' if len(names) > len(lines) else ""
    titles = ("Namespace", "Version", "Persistent", "Non-persistent", "Questions")
    head = "".join(f"<th>{title}</th>" for title in titles)
    return f"{_table('', f'<thead><tr>{head}</tr></thead>', lines)}{rest}"


def _facts(rows: Iterable[tuple[str, str]]) -> str:
    """A table of facts, each with its title."""
    return _table(' class="facts"', "", (f"<tr>{_cell(title)}{_cell(text)}</tr>" for title, text in rows))


def _table(kind: str, head: str, lines: Iterable[str]) -> str:
    body = "\n".join(lines)
    return f'<div class="wide"><table{kind}>{head}<tbody>\n{body}\n</tbody></table></div>'


def _cell(text: str) -> str:
    return f"<td>{escape(shown_text(text))}</td>"
