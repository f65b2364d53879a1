"""The topics of a listing in each form: small ones without Arrow, large ones by its kernels, to the same effect."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pyarrow as pa
import pytest

from broker_core.cli.printed_topics import FEW, Form, print_change, print_topics
from broker_core.client import TopicListing
from broker_core.errors import BrokerCoreError
from broker_core.redaction.printable_text import printable

QUESTION = {"namespace": "public/default", "mode": "ALL"}
SMALL = [f"persistent://public/default/{name}" for name in ("größe", 'quo"te', "a\\b", "x\x1b")]
LARGE = [f"persistent://public/default/topic-{number}" for number in range(FEW + 10)]


def printed(capfd: pytest.CaptureFixture[str], names: Any, form: Form) -> str:
    capfd.readouterr()
    listed = TopicListing(names, topics_hash="3b616a66")
    print_topics(listed, form, QUESTION)
    return capfd.readouterr().out


def column(names: list[str]) -> Any:
    return pa.array(names, pa.large_string())


@pytest.mark.parametrize("names", [SMALL, LARGE, []], ids=["small", "large", "none"])
@pytest.mark.parametrize("make", [list, column], ids=["strings", "Arrow"])
def test_each_form_says_the_same(capfd: pytest.CaptureFixture[str], names: list[str], make: Any) -> None:
    given = make(names)
    assert printed(capfd, given, "names") == "".join(f"{name}\n" for name in names)
    facts = {"topics_hash": "3b616a66", "filtered": True, "changed": True}
    whole = json.loads(printed(capfd, given, "json"))
    assert whole == QUESTION | {"topics": names} | facts
    *lines, trailer = map(json.loads, printed(capfd, given, "ndjson").splitlines())
    assert (lines, trailer) == (names, facts)
    header, *rows = csv.reader(io.StringIO(printed(capfd, given, "csv")))
    assert (header, [name for (name,) in rows]) == (["name"], names)
    table = printed(capfd, given, "table").splitlines()
    assert [line.strip() for line in table[3:-2]] == [printable(name) for name in names]


def test_details(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    properties = pa.map_(pa.string(), pa.string())
    rows: list[dict[str, Any]] = [
        {"name": 'quo"te, comma', "partitions": 2, "properties": {"region": "eu", "team": "a"}},
        {"name": "t\nu", "partitions": None, "properties": {}},
    ]
    table = pa.table(
        {
            "name": pa.array([row["name"] for row in rows]),
            "partitions": pa.array([2, None], pa.int32()),
            "properties": pa.array([[("region", "eu"), ("team", "a")], []], properties),
        }
    )
    listed = TopicListing([], topics_hash="3b616a66")

    def written(form: Form) -> bytes:
        print_topics(listed, form, QUESTION, details=table)
        return capfdbinary.readouterr().out

    def said(form: Form) -> str:
        return written(form).decode()

    assert json.loads(said("json"))["topics"] == rows
    *lines, trailer = map(json.loads, said("ndjson").splitlines())
    assert (lines, trailer) == (rows, {"topics_hash": "3b616a66", "filtered": True, "changed": True})
    header, first, second = csv.reader(io.StringIO(said("csv"), newline=""))
    assert header == ["name", "partitions", "properties"]
    assert first == ['quo"te, comma', "2", '{"region":"eu","team":"a"}']
    assert second == ["t\nu", "", "{}"]
    shown = said("table").splitlines()
    assert shown[1].split() == ["topic", "partitions", "properties"]
    assert shown[3].endswith("   2            region=eu team=a")
    assert pa.ipc.open_stream(written("arrow")).read_all().equals(table)


def test_an_arrow_stream(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    listed = TopicListing(SMALL, topics_hash="3b616a66")
    print_topics(listed, "arrow", QUESTION)
    table = pa.ipc.open_stream(capfdbinary.readouterr().out).read_all()
    assert table.to_pydict() == {"name": SMALL}


@pytest.mark.parametrize("names", [["t\nu"], column(["t\nu"]), column(["t\nu", *LARGE])])
def test_a_name_with_a_line_feed_is_no_line(capfd: pytest.CaptureFixture[str], names: Any) -> None:
    with pytest.raises(BrokerCoreError, match="--format json or ndjson"):
        printed(capfd, names, "names")
    assert "t\nu" in [json.loads(line) for line in printed(capfd, names, "ndjson").splitlines()]


@pytest.mark.parametrize("names", [SMALL, LARGE, []], ids=["small", "large", "none"])
def test_changes(capfd: pytest.CaptureFixture[str], names: list[str]) -> None:
    print_change("-", column(names), "names")
    assert capfd.readouterr().out == "".join(f"- {name}\n" for name in names)
    print_change("+", column(names), "ndjson")
    print_change("-", column(names), "ndjson")
    lines = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert lines == [{"added": name} for name in names] + [{"removed": name} for name in names]


def test_a_terminal_gets_nothing_that_it_would_obey(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("sys.stdout", terminal := Terminal())
    listed = TopicListing(column(["x\x1b[31m", "t\nu"]))
    print_topics(listed, "names", QUESTION)
    print_change("+", column(["x\x1b[31m"]), "names")
    assert terminal.getvalue() == "x\\x1b[31m\nt\\nu\n+ x\\x1b[31m\n"
