from __future__ import annotations

import json
import uuid

from broker_core.names.topic_id import parse_topic_id, topic_id_text
from tests.cli.conftest import Cli


def created(cli: Cli, *words: str) -> str:
    """The id that ``topics create`` prints."""
    said = cli("topics", "create", *words)
    assert said.code == 0, said.err
    return said.out.rpartition(" ")[2].strip()


def test_a_topic_is_described_by_its_name_and_by_its_id_in_every_form(cli: Cli) -> None:
    words = (
        "--partitions",
        "2",
        "--property",
        "region=eu",
        "--topic-config",
        "retention.ms=1",
        "--replication",
        "3",
    )
    topic_id = created(cli, "a/b", "x", *words)
    by_name = json.loads(cli("topics", "describe", "a/b", "x", "--format", "json").out)
    assert by_name["topic_id"] == topic_id
    assert by_name["configs"] == {"retention.ms": "1"}
    assert (by_name["replication"], by_name["partitions"], by_name["properties"]) == (3, 2, {"region": "eu"})
    parsed = parse_topic_id(topic_id)
    for text in (topic_id, f"{topic_id}==", parsed.hex, str(parsed)):
        assert json.loads(cli("topics", "describe", f"--id={text}", "--format", "json").out) == by_name
    table = cli("topics", "describe", "--id", topic_id).out
    assert topic_id in table
    assert "retention.ms=1" in table
    assert json.loads(cli("topics", "show", "a/b", "x", "--format", "json").out) == by_name


def test_names_and_ids_go_together(cli: Cli) -> None:
    topic_id = created(cli, "a/b", "x")
    created(cli, "a/b", "y")
    shown = json.loads(cli("topics", "describe", "a/b", "y", "--id", topic_id, "--format", "json").out)
    assert [row["name"] for row in shown] == ["persistent://a/b/y", "persistent://a/b/x"]


def test_an_id_that_no_topic_has_is_an_error_that_tells_of_a_deleted_one(cli: Cli) -> None:
    topic_id = created(cli, "a/b", "x")
    cli("topics", "delete", "a/b", "x")
    created(cli, "a/b", "x")
    said = cli("topics", "describe", "--id", topic_id).failed(1)
    assert f"no topic of the id {topic_id}" in said
    assert "persistent://a/b/x had it, and was deleted at" in said
    unknown = topic_id_text(uuid.uuid4())
    assert "had it" not in cli("topics", "describe", f"--id={unknown}").failed(1)
    assert "Invalid topic id 'abc'" in cli("topics", "describe", "--id", "abc").failed(2)
    assert cli("topics", "describe").code == 2
