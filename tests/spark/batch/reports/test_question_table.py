"""The table of all questions: its data, its script in node, and the page in a browser if there is one."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from broker_core.names import Mode
from broker_core_spark.batch.build_result import BuildResult
from broker_core_spark.batch.generation_differences import differences_to, totals_file
from broker_core_spark.batch.publish_gates import PublishedBefore
from broker_core_spark.batch.reports.html_report import html_page
from broker_core_spark.batch.reports.question_table import questions_data, questions_section
from broker_core_spark.batch.segments.question_totals import QuestionTotals
from broker_core_spark.format.canonical_question import CanonicalQuestion
from tests.support.machine import chromium
from tests.support.narrowed import present
from tests.support.spark_catalogues import result_of

EVIL = "</script><script>document.title='evil'</script><!-- & \u202e"
SHOWN = EVIL.replace("\u202e", r"\u202e")
ROWS: list[dict[str, Any]] = [
    {"namespace": "a/b", "pattern": "a/b/x.*"},
    {"namespace": "a/b", "pattern": "a/b/t1", "properties": {"k": "v"}},
    {"namespace": "a/b", "pattern": "(?=no)" + EVIL},
    {"namespace": "no/where", "pattern": "x"},
]
SCRIPT = Path(__file__).parents[4] / "plugins/spark/broker_core_spark/batch/reports/question_table.js"
NODE = shutil.which("node")
CHROMIUM = chromium()


@pytest.fixture
def result(tmp_path: Path) -> BuildResult:
    """``x.*`` has 2 topics and had 3; one question was removed; one is added, one refused, one left out."""
    result = result_of(tmp_path, ROWS, {"a/b": ["t1", "x1", "x2"]})
    known = [question for question in result.totals.questions if not question.selector.properties]
    before = QuestionTotals(known, np.array([3]), np.array([1], np.uint32))
    gone = CanonicalQuestion.of("a/b", Mode.ALL, "gone")
    published = PublishedBefore("f" * 64, frozenset([known[0].line, gone.line]), {})
    return replace(result, differences=differences_to(published, result.totals, totals_file(before)))


def test_every_question_is_in_the_data(result: BuildResult) -> None:
    data = questions_data(result)
    rows = {
        data["pattern"][row]: (data["states"][data["state"][row]], data["count"][row], data["before"][row])
        for row in range(len(data["pattern"]))
    }
    assert rows == {
        "a/b/x.*": ("precomputed", 2, 3),
        "a/b/t1": ("added", 0, None),
        "gone": ("removed", None, None),
        "x": ("left out", None, None),
        "(?=no)" + SHOWN: ("refused", None, None),
    }
    assert sorted(data["propertySets"]) == ["", "k=v"]


def test_no_name_ends_the_data(result: BuildResult) -> None:
    section = questions_section(result)
    found = present(
        re.search(r'<script type="application/json" id="questions-data">(.*?)</script>', section, re.DOTALL)
    )
    assert section.endswith(found[0])
    assert not set("<>&") & set(found[1])
    assert "(?=no)" + SHOWN in json.loads(found[1])["pattern"]


@pytest.mark.skipif(NODE is None, reason="node is not installed")
def test_the_script_finds_and_sorts(result: BuildResult, tmp_path: Path) -> None:
    (tmp_path / "data.json").write_text(json.dumps(questions_data(result)))
    (tmp_path / "ask.js").write_text(
        f"""
        const table = require({json.dumps(str(SCRIPT))});
        const small = table.decode(JSON.parse(require("fs").readFileSync({json.dumps(str(tmp_path / "data.json"))})));
        const patterns = (rows) => rows.map((row) => small.text(row, "pattern").slice(0, 8));
        const all = table.find(small, "", "all");
        const many = 100000, numbers = Array.from({{length: many}}, (_, at) => at);
        const large = table.decode({{
          namespaces: ["t/n"], modes: ["ALL"], propertySets: [""], states: ["precomputed"], reasons: [],
          namespace: numbers.map(() => 0), mode: numbers.map(() => 0), properties: numbers.map(() => 0),
          state: numbers.map(() => 0), reason: numbers.map(() => -1), hash: numbers.map(() => "0"),
          before: numbers.map(() => null), pattern: numbers.map((at) => "p-" + at),
          count: numbers.map((at) => at % 977),
        }});
        const found = table.sort(large, table.find(large, "P-99 t/N", "all"), "count", true);
        console.log(JSON.stringify({{
          byCount: patterns(table.sort(small, all.slice(), "count", true)),
          byCountUp: patterns(table.sort(small, all.slice(), "count", false)),
          byPattern: patterns(table.sort(small, all.slice(), "pattern", false)),
          words: patterns(table.find(small, "  A/B k=V ", "all")),
          reasons: patterns(table.find(small, "re2", "all")),
          fewer: patterns(table.find(small, "", "fewer topics")),
          nothing: patterns(table.find(small, "", "matches nothing")),
          added: patterns(table.find(small, "", "added")),
          change: small.text(all[0], "change") + small.text(all[1], "change"),
          found: found.length, first: large.count[found[0]],
          start: table.inView(0, 500, many), end: table.inView(30 * many, 500, many), few: table.inView(90, 500, 2),
        }}));
        """
    )
    said = subprocess.run(
        [str(NODE), str(tmp_path / "ask.js")], capture_output=True, text=True, timeout=120, check=True
    )
    answers = json.loads(said.stdout)
    assert answers["byCount"][:2] == ["a/b/x.*", "a/b/t1"]
    assert answers["byCountUp"][:2] == ["a/b/t1", "a/b/x.*"]
    assert answers["byPattern"] == sorted(answers["byPattern"])
    assert (answers["words"], answers["fewer"]) == (["a/b/t1"], ["a/b/x.*"])
    assert (answers["nothing"], answers["added"]) == (["a/b/t1"], ["a/b/t1"])
    assert answers["reasons"] == ["(?=no)</"]
    assert "-1" in answers["change"]
    assert answers["found"] == 1 + 10 + 100 + 1000
    assert answers["first"] == max(number % 977 for number in range(100_000) if str(number).startswith("99"))
    assert answers["start"][0] == 0
    assert answers["start"][1] < 50
    assert answers["end"][1] == 100_000
    assert answers["few"] == [0, 2]


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")
def test_a_browser_shows_some_of_many_rows(result: BuildResult, tmp_path: Path) -> None:
    many = 20_000
    questions = [CanonicalQuestion.of("a/b", Mode.ALL, f"a/b/p{number}") for number in range(many)]
    totals = QuestionTotals(questions, np.arange(many), np.zeros(many, np.uint32))
    (tmp_path / "report.html").write_text(html_page(replace(result, totals=totals, differences=None)))
    said = subprocess.run(
        [
            str(CHROMIUM),
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            "--disable-background-networking",
            f"--user-data-dir={tmp_path / 'profile'}",
            "--dump-dom",
            (tmp_path / "report.html").as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )
    assert "20,002 of 20,002" in said.stdout
    rows = re.findall(r'<div class="row state-.*?title="(a/b/p\d+)"', said.stdout)
    assert rows[0] == "a/b/p19999"  # the most topics come first
    assert 12 < len(rows) < 100
    assert "<title>evil" not in said.stdout
