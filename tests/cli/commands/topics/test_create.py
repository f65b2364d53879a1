from __future__ import annotations

import json

from tests.cli.conftest import Cli


def test_create_and_delete(cli: Cli) -> None:
    said = cli(
        "topics", "create", "a/b", "x", "--partitions", "2", "--property", "region=eu", "--property", "k="
    )
    shown = json.loads(cli("topics", "show", "a/b/x", "--format", "json").out)
    assert said.out == f"created persistent://a/b/x with 2 partitions, id {shown['topic_id']}\n"
    assert shown["properties"] == {"region": "eu", "k": ""}
    assert "is there already" in cli("topics", "create", "persistent://a/b/x").only_error
    assert cli("topics", "delete", "a/b", "x-partition-1").out == "deleted persistent://a/b/x-partition-1\n"
    assert "no topic persistent://a/b/y" in cli("topics", "delete", "a/b", "x", "y").only_error
    assert cli("topics", "delete", "a/b", "x").code == 0
    assert json.loads(cli("topics", "show", "a/b", "--format", "json").out)["topics"] == 0
    new = cli("topics", "create", "a/b/x").code == 0
    assert new
    assert json.loads(cli("topics", "show", "a/b/x", "--format", "json").out)["topic_id"] != shown["topic_id"]
    assert (
        "--property 'k': expected KEY=VALUE" in cli("topics", "create", "a/b/z", "--property", "k").only_error
    )
    assert (
        "Invalid value for '--partitions'"
        in cli("topics", "create", "a/b/z", "--partitions", "-1").only_error
    )


def test_configs_are_those_that_kafka_takes(cli: Cli) -> None:
    words = ("topics", "create", "a/b", "x", "--topic-config")
    for config, reason in (
        ("retention.ms=soon", "retention.ms"),
        ("owner=me", "Unknown topic config name: owner"),
        ("owner", "expected KEY=VALUE"),
    ):
        assert reason in cli(*words, config).failed(2)
    assert cli(*words, "cleanup.policy=compact", "--topic-config", "retention.ms=1").code == 0
    shown = json.loads(cli("topics", "show", "a/b", "x", "--format", "json").out)
    assert shown["configs"] == {"cleanup.policy": "compact", "retention.ms": "1"}
    assert shown["replication"] is None


def test_replicas_are_as_many_as_an_import_takes(cli: Cli) -> None:
    said = cli("topics", "create", "a/b", "x", "--replication", "32768")
    assert "Invalid value for '--replication'" in said.only_error
    assert cli("topics", "create", "a/b", "x", "--replication", "32767").code == 0


def test_a_topic_is_deleted_by_its_id_and_one_of_its_name_stays(cli: Cli) -> None:
    ids = []
    for _ in range(2):
        cli("topics", "delete", "a/b", "x")
        ids.append(cli("topics", "create", "a/b", "x", "--partitions", "2").out.rpartition(" ")[2].strip())
    assert f"no topic of the id {ids[0]}" in cli("topics", "delete", "--id", ids[0]).only_error
    assert f"no topic of the id {ids[0]}" in cli("topics", "delete", "--id", ids[0], "--dry-run").only_error
    cli("topics", "create", "a/b", "y")
    dry = cli("topics", "delete", "a/b", "y", "--id", ids[1], "--dry-run")
    assert dry.out == "would delete persistent://a/b/y\nwould delete persistent://a/b/x\n"
    said = cli("topics", "delete", "a/b", "y", "--id", ids[1])
    assert said.out == "deleted persistent://a/b/y\ndeleted persistent://a/b/x\n"
    assert cli("topics", "delete").code == 2
    assert cli("topics", "delete", "a/b", "--id", ids[1], "--pattern", ".*").code == 2
