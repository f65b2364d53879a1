"""The table of all questions in the report: compact data, and the script that searches, sorts and shows it.

Most texts repeat, so a row has numbers of texts. Names and patterns are foreign: the data is JSON without a character
that HTML knows, and the script sets texts only.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from html import escape
from importlib.resources import files
from typing import Any, Final

from broker_core.names import Mode
from broker_core.plugin_cli import printable
from broker_core_spark.batch.build_result import BuildResult
from broker_core_spark.batch.generation_differences import UNKNOWN
from broker_core_spark.format import CanonicalQuestion

__all__ = ["content_policy", "questions_data", "questions_section", "read_part", "shown_text"]

_STATES: Final = ("precomputed", "added", "removed", "refused", "left out")
_PRECOMPUTED, _ADDED, _REMOVED, _REFUSED, _LEFT_OUT = range(len(_STATES))
_COLUMNS: Final = {
    "namespace": "Namespace",
    "mode": "Mode",
    "pattern": "Pattern",
    "properties": "Properties",
    "count": "Topics",
    "change": "Change",
    "hash": "Hash",
    "state": "State",
}
#: The columns of the data, in the order of the script.
_DATA: Final = ("namespace", "mode", "pattern", "properties", "count", "before", "hash", "state", "reason")
_FILTERS: Final = (
    "all",
    "added",
    "removed",
    "more topics",
    "fewer topics",
    "matches nothing",
    "refused",
    "left out",
)
#: JSON has these letters in texts alone. Without them no text ends the element.
_ESCAPES: Final = {ord(letter): f"\\u{ord(letter):04x}" for letter in "<>&"}
_LONGEST: Final = 300  # characters of a text in a cell


def read_part(name: str) -> str:
    """The script or the style of the report."""
    return files("broker_core_spark.batch.reports").joinpath(name).read_text(encoding="utf-8")


def content_policy(style: str, script: str) -> str:
    """The content security policy of the page: its own style and its own script, and nothing else."""
    style_hash, script_hash = (
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (style, script)
    )
    return f"default-src 'none'; style-src 'sha256-{style_hash}'; script-src 'sha256-{script_hash}'"


def questions_section(result: BuildResult) -> str:
    """The controls, the empty table and its data."""
    options = "".join(f"<option>{escape(name)}</option>" for name in _FILTERS)
    heads = "".join(
        f'<div class="{name}" role="columnheader"><button type="button" data-column="{name}">{title}</button></div>'
        for name, title in _COLUMNS.items()
    )
    data = json.dumps(questions_data(result), separators=(",", ":")).translate(_ESCAPES)
    return (
        '<h2>All questions</h2>\n<noscript><p class="none">This table needs scripts.</p></noscript>\n'
        '<div id="questions" hidden><div id="questions-bar">'
        '<input id="questions-search" type="search" placeholder="Search" aria-label="Search">'
        f'<select id="questions-filter" aria-label="Show">{options}</select>'
        '<span id="questions-counted" aria-live="polite"></span></div>\n'
        '<div id="questions-view" role="table" tabindex="0" aria-label="All questions">'
        f'<div id="questions-head" role="row">{heads}</div>'
        '<div id="questions-body" role="rowgroup"></div></div></div>\n'
        f'<script type="application/json" id="questions-data">{data}</script>'
    )


def questions_data(result: BuildResult) -> dict[str, Any]:
    """The columns of all questions: precomputed, removed, refused and left out ones."""
    rows = list(_rows(result))
    columns: dict[str, list[Any]] = {name: [row[at] for row in rows] for at, name in enumerate(_DATA)}
    texts: dict[str, list[Any]] = {"modes": list(Mode.__members__), "states": list(_STATES)}
    columns["mode"] = [texts["modes"].index(mode) for mode in columns["mode"]]
    columns["pattern"] = [None if pattern is None else shown_text(pattern) for pattern in columns["pattern"]]
    # Texts that repeat are numbers.
    for name, every in (("namespace", "namespaces"), ("properties", "propertySets"), ("reason", "reasons")):
        numbers = {text: number for number, text in enumerate(dict.fromkeys(columns[name]))}
        columns[name] = [-1 if text is None else numbers[text] for text in columns[name]]
        texts[every] = ["" if text is None else shown_text(text) for text in numbers]
    return columns | texts


def _rows(result: BuildResult) -> Iterator[tuple[Any, ...]]:
    """The row of each question, as in :data:`_DATA`."""
    totals, differences = result.totals, result.differences
    before = [UNKNOWN] * len(totals) if differences is None else differences.counts_before.tolist()
    added = [False] * len(totals) if differences is None else differences.added.tolist()
    removed = () if differences is None else differences.removed
    for total, had, new in zip(totals, before, added, strict=True):
        yield (
            *_cells(total.question),
            total.count,
            None if had == UNKNOWN else had,
            total.topics_hash,
            _ADDED if new else _PRECOMPUTED,
            None,
        )
    for questions, state in ((removed, _REMOVED), (result.left_out, _LEFT_OUT)):
        for question in questions:
            yield *_cells(question), None, None, "", state, None
    for one in result.refused:
        yield (
            one.namespace,
            one.mode,
            one.pattern,
            _properties(one.properties),
            None,
            None,
            "",
            _REFUSED,
            one.reason,
        )


def _cells(question: CanonicalQuestion) -> tuple[Any, ...]:
    selector = question.selector
    return question.namespace, question.mode.name, selector.pattern, _properties(selector.properties)


def _properties(pairs: tuple[tuple[str, str], ...]) -> str:
    return ", ".join(f"{key}={value}" for key, value in pairs)


def shown_text(text: str) -> str:
    """A text without control characters, cut if it is long."""
    return printable(text if len(text) <= _LONGEST else text[:_LONGEST] + "…")
