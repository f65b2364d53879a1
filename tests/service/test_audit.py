"""The lines of each attempt to change something."""

from __future__ import annotations

import json
from typing import Any

import pytest
from structlog.testing import capture_logs

from broker_core.access.asker import Asker
from broker_core.catalog import CatalogVersion
from broker_core.logs import LogRenderer, reason_of
from broker_core.service.audit import ACTIONS, AUDIT_LOGGER, OUTCOMES, Action, Attempt, AuditRow
from tests.docs.pages import ROOT

ASKER = Asker(
    role="alice",
    original_principal="bob",
    remote_address="127.0.0.1:4000",
    client_version="curl/8",
    transport="http",
)
VERSION = CatalogVersion("c", 4, "ab")


def lines(attempt: Attempt, *rows: AuditRow) -> list[dict[str, Any]]:
    with capture_logs() as logs:
        attempt.ended(rows)
    return [dict(line) for line in logs]


def test_a_line_has_who_from_where_what_and_the_outcome() -> None:
    attempt = Attempt("delete_topic", ASKER, namespace="a/b")
    attempt.made(VERSION, deleted=3)
    (line,) = lines(attempt, AuditRow("orders", fields={"status": 204, **attempt.fields}))
    assert line == {
        "event": "audit",
        "log_level": "info",
        "logger": "broker_core.audit",
        "action": "delete_topic",
        "outcome": "done",
        "role": "alice",
        "principal": "bob",
        "address": "127.0.0.1:4000",
        "client_version": "curl/8",
        "transport": "http",
        "namespace": "a/b",
        "target": "orders",
        "status": 204,
        "deleted": 3,
        "version": "c:4.ab",
    }


def test_fields_without_a_value_are_left_out_and_zero_is_one() -> None:
    attempt = Attempt("import_topics", Asker(transport="operator"))
    (line,) = lines(attempt, AuditRow("", "refused", "DENIED", {"created": 0, "status": None}))
    assert line == {
        "event": "audit",
        "log_level": "info",
        "logger": "broker_core.audit",
        "action": "import_topics",
        "outcome": "refused",
        "cause": "DENIED",
        "transport": "operator",
        "created": 0,
    }


def test_what_was_so_already_is_unchanged() -> None:
    attempt = Attempt("put_topic", ASKER)
    attempt.made(VERSION, ["x"])
    rows = [AuditRow("x"), AuditRow("y"), AuditRow("x", "refused", "CONFLICT")]
    found = [(line["target"], line["outcome"]) for line in lines(attempt, *rows)]
    assert found == [("x", "unchanged"), ("y", "done"), ("x", "refused")]


@pytest.mark.parametrize("targets", [["a", "b"], ["a", "token=geheim"], ["", ""]])
def test_many_targets_have_a_line_each(targets: list[str]) -> None:
    rows = [AuditRow(target, "refused", "DENIED") for target in targets]
    together = lines(Attempt("create_topic", ASKER), *rows)
    assert together == [line for row in rows for line in lines(Attempt("create_topic", ASKER), row)]
    assert "geheim" not in str(together)


@pytest.mark.parametrize("more", [0, 150])
def test_many_refused_rows_are_counted(more: int) -> None:
    rows = [AuditRow("x", "refused", "INVALID_TOPIC_EXCEPTION")] * (100 + more) + [AuditRow("y")] * 3
    found = lines(Attempt("create_topic", ASKER), *rows)
    assert [line["target"] for line in found[:103]] == ["x"] * 100 + ["y"] * 3
    assert [(line["outcome"], line["more"]) for line in found[103:]] == [("refused", more)] * bool(more)


@pytest.mark.parametrize(("action", "asker"), [(None, ASKER), ("put_topic", None)])
def test_what_only_reads_and_strangers_have_no_line(action: Action | None, asker: Asker | None) -> None:
    assert lines(Attempt(action, asker), AuditRow("x")) == []


def test_lines_that_are_alike_are_all_written() -> None:
    (line,) = lines(Attempt("delete_topic", ASKER), AuditRow("", "refused", "DENIED"))
    assert reason_of(AUDIT_LOGGER, line) is None


@pytest.mark.parametrize("human", [False, True], ids=["JSON", "for a person"])
def test_text_of_a_client_shows_no_secret_and_breaks_no_line(human: bool) -> None:
    asker = Asker(client_version="curl/8 --password geheim\n{}", remote_address="127.0.0.1:4000")
    (event,) = lines(Attempt("put_topic", asker), AuditRow("token=geheim\x1b[0m", "refused", "NAME"))
    line = LogRenderer(human=human).line(event)
    assert "geheim" not in line
    assert line.count("\n") == 1
    assert "\x1b" not in line
    assert "broker_core.audit" in line
    if not human:
        assert json.loads(line)["cause"] == "NAME"


def test_the_page_has_each_action_and_outcome() -> None:
    page = (ROOT / "docs" / "how-to" / "monitor.md").read_text()
    section = page.partition("## Changes in the log")[2].partition("\n## ")[0]
    assert [word for word in (*ACTIONS, *OUTCOMES) if f"`{word}`" not in section] == []
