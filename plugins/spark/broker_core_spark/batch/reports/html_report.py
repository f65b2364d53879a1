"""The HTML report of a generation: its coverage, its largest listings, and patterns that deserve a look.

Patterns and names are foreign text. All of it is escaped, and the page loads and runs nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Final

from broker_core_spark.batch.errors import BatchError
from broker_core_spark.errors import StoreFailed
from broker_core_spark.format.canonical_question import DOMAIN_ORDER
from broker_core_spark.store.addressed_file import addressed_file

if TYPE_CHECKING:
    from broker_core_spark.batch.build_result import BuildResult
    from broker_core_spark.batch.segments.question_totals import QuestionTotal

__all__ = ["html_page", "write_html_report"]

#: Rows of a table. The rest is counted.
_MOST_ROWS: Final = 200
_LARGEST: Final = 50
_DOMAINS: Final = DOMAIN_ORDER[::-1]  # the usual domain first
_LONGEST: Final = 300  # characters of a text in a cell

_STYLE: Final = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem; color: #222 }
h1 { font-size: 1.5rem } h2 { font-size: 1.15rem; margin-top: 2rem }
table { border-collapse: collapse; width: 100% } th, td { text-align: left; padding: .25rem .6rem; vertical-align: top }
th { border-bottom: 2px solid #888 } td { border-bottom: 1px solid #ddd; overflow-wrap: anywhere }
td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }
code { white-space: pre-wrap } .none { color: #666 }
@media (prefers-color-scheme: dark) { body { background: #181818; color: #ddd } td { border-color: #333 } }
"""


def write_html_report(address: str, result: BuildResult, options: Mapping[str, str] | None = None) -> None:
    """Write the page to a path or into a bucket with ``options``.

    An error says that the generation is published all the same.
    """
    try:
        addressed_file(address, options).write(html_page(result).encode())
    except StoreFailed as error:
        raise BatchError(f"Cannot write the report {error}; the generation is published") from error


def html_page(result: BuildResult) -> str:
    """The text of the page."""
    manifest = result.manifest
    counts = manifest.counts()
    largest = sorted(result.totals, key=lambda total: -total.count)[:_LARGEST]
    nothing = [total for total in result.totals if not total.count]
    everything = [
        total
        for total in result.totals
        if total.question.selector.pattern is not None
        and total.count
        and total.count == _topics(counts, total.question.namespace, total.question.domains)
    ]
    parts = [
        _heading("Generation", manifest.id),
        _coverage(result, counts),
        _section("Largest listings", _questions(largest)),
        _section("Patterns that match nothing", _questions(nothing)),
        _section("Patterns that match everything", _questions(everything)),
        _section("Refused patterns", _refused(result)),
        _section("Namespaces that the catalogue does not have", _unknown(result)),
        _section("Namespaces", _namespaces(result, counts)),
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Generation {escape(manifest.id[:12])}</title><style>{_STYLE}</style></head>\n<body>\n"
        + "\n".join(parts)
        + "\n</body></html>\n"
    )


def _heading(what: str, name: str) -> str:
    return f"<h1>{escape(what)} <code>{escape(name[:12])}</code></h1>"


def _coverage(result: BuildResult, counts: dict[tuple[str, str], int]) -> str:
    manifest, loaded = result.manifest, result.loaded
    covered = {total.question.namespace for total in result.totals}
    topics = sum(_topics(counts, namespace, _DOMAINS) for namespace in covered)
    lost = loaded.times_refused
    version = "static: it has no versions" if manifest.static else "one version of each namespace, see below"
    rows: list[tuple[str, str]] = [
        ("Generation", manifest.id),
        ("Number", str(result.number)),
        ("Catalogue", f"{result.catalogue} (id {manifest.catalogue_id}; {version})"),
        ("Topics", f"{manifest.topics:,}"),
        (
            "Questions precomputed",
            f"{len(result.totals):,} of {loaded.rows:,} rows, {loaded.duplicates:,} repeated",
        ),
        ("Questions kept of earlier builds", f"{loaded.kept:,}"),
        ("Questions refused", f"{len(loaded.refused):,}"),
        ("Properties that select", ", ".join(manifest.property_keys) or "none"),
        ("Coverage of what was asked", _share(loaded.times_asked - lost, loaded.times_asked)),
        ("Namespaces with a question", f"{len(covered):,} of {len(manifest.namespaces):,}"),
        ("Topics in these", f"{topics:,} ({_share(topics, manifest.topics)})"),
        ("Repeated topics in the source", f"{result.duplicates:,}"),
        ("System topics left out", f"{result.system_topics:,}"),
        ("Rows in quarantine", f"{result.quarantined:,}"),
        (
            "Segments",
            f"{len(manifest.segments):,}, {result.segments_written:,} written, {result.segments_kept:,} kept",
        ),
    ]
    return _section("Coverage", _table(("", ""), rows))


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "-"


def _topics(counts: dict[tuple[str, str], int], namespace: str, domains: Iterable[str]) -> int:
    return sum(counts.get((namespace, domain), 0) for domain in domains)


def _questions(totals: Sequence[QuestionTotal]) -> str:
    rows = [
        (
            total.question.namespace,
            total.question.mode.name,
            "(all topics)" if total.question.selector.pattern is None else total.question.selector.pattern,
            ", ".join(f"{key}={value}" for key, value in total.question.selector.properties),
            f"{total.count:,}",
            total.topics_hash,
        )
        for total in totals[:_MOST_ROWS]
    ]
    columns = ("Namespace", "Mode", "Pattern", "Properties", "#Topics", "Hash")
    return _table(columns, rows, more=len(totals) - len(rows))


def _refused(result: BuildResult) -> str:
    rows = [(one.namespace, one.mode, one.pattern, one.reason) for one in result.refused[:_MOST_ROWS]]
    columns = ("Namespace", "Mode", "Pattern", "Reason")
    return _table(columns, rows, more=len(result.refused) - len(rows))


def _unknown(result: BuildResult) -> str:
    names = sorted({question.namespace for question in result.left_out})
    rows = [(name,) for name in names[:_MOST_ROWS]]
    return _table(("Namespace",), rows, more=len(names) - len(rows))


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
    header = f"<thead><tr>{head}</tr></thead>" if any(columns) else ""
    return f"<table>{header}<tbody>\n" + "\n".join(lines) + f"\n</tbody></table>{rest}"


def _cell(text: str) -> str:
    shown = text if len(text) <= _LONGEST else text[:_LONGEST] + "…"
    return escape("".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in shown))
