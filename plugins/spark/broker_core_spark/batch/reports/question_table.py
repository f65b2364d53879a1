"""The table of all questions in the report: compact data, and the script that searches, sorts and shows it.

Most texts repeat, so a row has numbers of texts. Names and patterns are foreign: the data is JSON without a character
that HTML knows, and the script sets texts only.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from broker_core.names import Mode
from broker_core_spark.batch.generation_differences import UNKNOWN

if TYPE_CHECKING:
    from broker_core_spark.batch.build_result import BuildResult

__all__ = ["content_policy", "questions_data", "questions_section", "read_part"]

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
Shown = Callable[[str], str]


def read_part(name: str) -> str:
    """The script or the style of the report."""
    return files("broker_core_spark.batch.reports").joinpath(name).read_text(encoding="utf-8")


def content_policy(style: str, script: str) -> str:
    """The content security policy of the page: its own style and its own script, and nothing else."""
    style_hash, script_hash = (
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (style, script)
    )
    return f"default-src 'none'; style-src 'sha256-{style_hash}'; script-src 'sha256-{script_hash}'"


def questions_section(result: BuildResult, shown: Shown) -> str:
    """The controls, the empty table and its data. ``shown`` makes foreign text printable."""
    options = "".join(f"<option>{escape(name)}</option>" for name in _FILTERS)
    heads = "".join(
        f'<div class="{name}" role="columnheader"><button type="button" data-column="{name}">{title}</button></div>'
        for name, title in _COLUMNS.items()
    )
    data = json.dumps(questions_data(result, shown), separators=(",", ":"))
    # JSON has these letters in texts alone. Without them no text ends the element.
    for letter in "<>&":
        data = data.replace(letter, f"\\u{ord(letter):04x}")
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


def questions_data(result: BuildResult, shown: Shown) -> dict[str, Any]:
    """The columns of all questions: precomputed, removed, refused and left out ones."""
    rows = _Rows(shown)
    totals, differences = result.totals, result.differences
    counts, hashes = totals.counts.tolist(), [total.topics_hash for total in totals]
    before = [UNKNOWN] * len(totals) if differences is None else differences.counts_before.tolist()
    added = [False] * len(totals) if differences is None else differences.added.tolist()
    for at, question in enumerate(totals.questions):
        selector = question.selector
        rows.add(
            question.namespace,
            question.mode.name,
            selector.pattern,
            selector.properties,
            _ADDED if added[at] else _PRECOMPUTED,
            count=counts[at],
            before=None if before[at] == UNKNOWN else before[at],
            topics_hash=hashes[at],
        )
    for state, questions in (
        (_REMOVED, () if differences is None else differences.removed),
        (_LEFT_OUT, result.left_out),
    ):
        for question in questions:
            selector = question.selector
            rows.add(question.namespace, question.mode.name, selector.pattern, selector.properties, state)
    for one in result.refused:
        rows.add(one.namespace, one.mode, one.pattern, one.properties, _REFUSED, reason=one.reason)
    return rows.data()


class _Rows:
    """Collects rows as columns. Texts that repeat become numbers."""

    def __init__(self, shown: Shown) -> None:
        self._shown = shown
        self._namespaces: dict[str, int] = {}
        self._sets: dict[tuple[tuple[str, str], ...], int] = {}
        self._reasons: dict[str, int] = {}
        self._columns: dict[str, list[Any]] = {
            name: []
            for name in (
                "namespace",
                "mode",
                "pattern",
                "properties",
                "count",
                "before",
                "hash",
                "state",
                "reason",
            )
        }

    def add(
        self,
        namespace: str,
        mode: str,
        pattern: str | None,
        properties: tuple[tuple[str, str], ...],
        state: int,
        *,
        count: int | None = None,
        before: int | None = None,
        topics_hash: str = "",
        reason: str | None = None,
    ) -> None:
        row = (
            self._namespaces.setdefault(namespace, len(self._namespaces)),
            list(Mode.__members__).index(mode),
            None if pattern is None else self._shown(pattern),
            self._sets.setdefault(properties, len(self._sets)),
            count,
            before,
            topics_hash,
            state,
            -1 if reason is None else self._reasons.setdefault(reason, len(self._reasons)),
        )
        for column, value in zip(self._columns.values(), row, strict=True):
            column.append(value)

    def data(self) -> dict[str, Any]:
        return {
            **self._columns,
            "namespaces": [self._shown(name) for name in self._namespaces],
            "modes": list(Mode.__members__),
            "propertySets": [
                self._shown(", ".join(f"{key}={value}" for key, value in pairs)) for pairs in self._sets
            ],
            "states": _STATES,
            "reasons": [self._shown(reason) for reason in self._reasons],
        }
