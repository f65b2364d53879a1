"""The line of each attempt to change something."""

from __future__ import annotations

import json

import pytest
from structlog.testing import capture_logs

from broker_core.access.asker import Asker
from broker_core.access.audit_log import ACTIONS, AUDIT_LOGGER, OUTCOMES, audit, audit_lines
from broker_core.logs import Renderer, reason_of
from tests.docs.pages import ROOT

ASKER = Asker(
    role="alice",
    original_principal="bob",
    remote_address="127.0.0.1:4000",
    client_version="curl/8",
    transport="http",
)


def test_a_line_has_who_from_where_what_and_the_outcome() -> None:
    with capture_logs() as logs:
        audit(ASKER, "delete_topic", "done", namespace="a/b", target="orders", deleted=3)
    assert logs == [
        {
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
            "deleted": 3,
        }
    ]


def test_fields_without_a_value_are_left_out_and_zero_is_one() -> None:
    with capture_logs() as logs:
        audit(
            Asker(transport="operator"), "import_topics", "refused", cause="DENIED", created=0, version=None
        )
    assert logs == [
        {
            "event": "audit",
            "log_level": "info",
            "logger": "broker_core.audit",
            "action": "import_topics",
            "outcome": "refused",
            "cause": "DENIED",
            "transport": "operator",
            "created": 0,
        }
    ]


@pytest.mark.parametrize("targets", [["a", "b"], ["a", "token=geheim"], ["", ""]])
def test_many_targets_have_a_line_each(targets: list[str]) -> None:
    with capture_logs() as logs:
        audit_lines(ASKER, "create_topic", namespace="a/b")("refused", targets, cause="DENIED", version=None)
    with capture_logs() as alone:
        for target in targets:
            audit(ASKER, "create_topic", "refused", namespace="a/b", target=target, cause="DENIED")
    assert logs == alone
    assert "geheim" not in str(logs)


def test_lines_that_are_alike_are_all_written() -> None:
    with capture_logs() as logs:
        audit(ASKER, "delete_topic", "refused", cause="DENIED")
    assert reason_of(AUDIT_LOGGER, logs[0]) is None


@pytest.mark.parametrize("human", [False, True], ids=["JSON", "for a person"])
def test_text_of_a_client_shows_no_secret_and_breaks_no_line(human: bool) -> None:
    asker = Asker(client_version="curl/8 --password geheim\n{}", remote_address="127.0.0.1:4000")
    with capture_logs() as logs:
        audit(asker, "put_topic", "refused", target="token=geheim\x1b[0m", cause="NAME")
    line = Renderer(human=human).line(logs[0])
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
