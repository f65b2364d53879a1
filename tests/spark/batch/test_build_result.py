"""The line of JSON about a build."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from tests.support.spark_catalogues import result_of


def _row(namespace: str, pattern: str) -> dict[str, object]:
    return {"namespace": namespace, "mode": "PERSISTENT", "pattern": pattern, "properties": {}}


def test_the_line_has_what_a_program_asks_for(tmp_path: Path) -> None:
    rows = [_row("a/b", "a/b/x.*"), _row("a/b", "a/b/(?=y)"), _row("a/none", "a/none/.*")]
    result = result_of(tmp_path, rows, {"a/b": ["x1", "x2", "y"]})
    record = json.loads(json.dumps(result.record()))
    assert (record["generation"], record["number"], record["topics"]) == (result.generation, 1, 3)
    assert (record["questions"], record["matches"]) == (1, 2)
    assert record["refused"] == len(result.refused) == 1
    assert record["refused_patterns"][0]["pattern"] == "a/b/(?=y)"
    assert record["unknown_namespaces"] == ["a/none"]


def test_a_notebook_shows_a_table_without_markup_of_names(tmp_path: Path) -> None:
    result = result_of(tmp_path, [_row("a/b", "a/b/x.*"), _row("a/none", "x")], {"a/b": ["x1", "x2"]})
    shown = replace(result, catalogue="<script>")._repr_html_()
    assert "<script>" not in shown
    for said in ("<th>Matches</th><td>2</td>", "<td>50.0%</td>", "<th>Questions left out</th><td>1</td>"):
        assert said in shown
