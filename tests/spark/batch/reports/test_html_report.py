"""The HTML report: its contents, and foreign text is escaped."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from broker_core.names import Mode
from broker_core_spark.batch.generation_differences import differences_to
from broker_core_spark.batch.publish_gates import PublishedBefore
from broker_core_spark.batch.reports.html_report import html_page
from broker_core_spark.format.canonical_question import CanonicalQuestion
from tests.support.spark_catalogues import result_of

EVIL = "<script>alert('1')</script>&\x07"
ROWS: list[dict[str, Any]] = [
    {"namespace": "a/b", "pattern": ".*1"},
    {"namespace": "a/b", "pattern": "a/b/.*", "count": 5},
    {"namespace": "a/b", "pattern": "a/b/" + EVIL},
    {"namespace": "a/b", "pattern": "(?=x)" + EVIL, "count": 3},
    {"namespace": "no/where", "pattern": "x"},
]


class Reader(HTMLParser):
    """Collects tags, the headings, and the text below each."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.sections: dict[str, str] = {"": ""}
        self.heading = False
        self.section = ""
        self.scripts = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        assert not any(name.startswith("on") or name in ("src", "href", "style") for name, _ in attrs)
        self.heading = tag == "h2"
        self.scripts += tag == "script"

    def handle_endtag(self, tag: str) -> None:
        self.heading = False

    def handle_data(self, data: str) -> None:
        if self.heading:
            self.section = data
            self.sections[data] = ""
        else:
            self.sections[self.section] += data


def test_what_the_page_says(tmp_path: Path) -> None:
    result = result_of(tmp_path, ROWS, {"a/b": ["t1", "t2"], "a/c": ["x"]})
    reader = Reader()
    reader.feed(html_page(result))
    assert reader.scripts == 2  # the data and the page's own script, none of a name
    sections = reader.sections
    assert "RE2 refuses it" in sections["All questions"]  # its data, once
    assert html_page(result).count("no/where") == 1
    assert "1 of 2" in sections["Coverage"]  # namespaces with a question
    # Refused questions were asked 3 times and one without a namespace once, of 11 times.
    assert "63.6% (7 of 11)" in sections["Coverage"]
    assert "postgresql://host/<db>" in sections["Coverage"]
    page = html_page(result)
    assert "\x07" not in page
    # Names of facts keep their words whole on a narrow screen, patterns and topics are broken anywhere.
    assert ".facts td:first-child { overflow-wrap: break-word }" in page
    assert page.count('<table class="facts"><tbody>') == 2
    assert "<table><thead>" in page
    assert "<table><tbody>" not in page


def test_what_is_left_out_is_not_covered(tmp_path: Path) -> None:
    rows = [{"namespace": f"a/{number}", "pattern": "x"} for number in range(100)]
    result = result_of(tmp_path, rows, {f"a/{number}": ["x"] for number in range(20)})
    assert result.coverage == 0.2
    assert "20.0% (20 of 100)" in html_page(result)


def test_nothing_asked_has_no_coverage(tmp_path: Path) -> None:
    result = result_of(tmp_path, [], {"a/b": ["t"]})
    assert result.coverage is None
    assert "- (0 of 0)" in html_page(result)


def test_who_built_and_what_changed(tmp_path: Path) -> None:
    result = result_of(tmp_path, ROWS, {"a/b": ["t1", "t2"]})
    lines = frozenset([result.totals.questions[0].line, CanonicalQuestion.of("a/b", Mode.ALL, "gone").line])
    result = replace(
        result,
        differences=differences_to(PublishedBefore("f" * 64, lines, {}), result.totals, None),
        task_seconds=(3.0, 1.0, 2.0),
    )
    reader = Reader()
    reader.feed(html_page(result))
    for said in (
        "ann on host1, process 7, run run1",
        "app-7",
        "2026-03-01 10:00:00",
        "median 2.0, longest 3.0",
    ):
        assert said in reader.sections["Build"]
    said = reader.sections["Differences to the last generation"].replace("\n", "")
    assert "Questions added2Questions removed1" in said
    assert "not known" in said


def test_long_tables_are_cut(tmp_path: Path) -> None:
    topics = {f"a/{number}": ["t"] for number in range(250)}
    assert "And 50 more." in html_page(result_of(tmp_path, [], topics))
