"""The HTML report: its contents, and foreign text is escaped."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from broker_core_spark.batch.errors import BatchError
from broker_core_spark.batch.reports.html_report import html_page, write_html_report
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

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        assert not any(name.startswith("on") or name in ("src", "href") for name, _ in attrs)
        self.heading = tag == "h2"

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
    assert "script" not in reader.tags
    sections = reader.sections
    assert EVIL[:-1] in sections["Patterns that match nothing"]
    assert "a/b/.*" in sections["Patterns that match everything"]
    assert ".*1" not in sections["Patterns that match everything"]
    assert "RE2 refuses it" in sections["Refused patterns"]
    assert "no/where" in sections["Namespaces that the catalogue does not have"]
    assert "1 of 2" in sections["Coverage"]  # namespaces with a question
    assert "72.7%" in sections["Coverage"]  # 3 of 11 times the question was refused
    assert "postgresql://host/<db>" in sections["Coverage"]
    assert "\x07" not in html_page(result)


def test_long_tables_are_cut(tmp_path: Path) -> None:
    rows = [{"namespace": "a/b", "pattern": f"none-{number}"} for number in range(250)]
    assert "And 50 more." in html_page(result_of(tmp_path, rows, {"a/b": ["t"]}))


def test_a_report_that_cannot_be_written(tmp_path: Path) -> None:
    result = result_of(tmp_path / "store", [], {"a/b": ["t"]})
    with pytest.raises(BatchError, match="the generation is published"):
        write_html_report(str(tmp_path / "none" / "report.html"), result)
    write_html_report(str(tmp_path / "report.html"), result)
    assert (tmp_path / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")
