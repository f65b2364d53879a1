from __future__ import annotations

import json

import pytest

from broker_core.wire.kafka import LIST_GROUPS, METADATA, OFFSET_COMMIT
from tests.cli.conftest import Cli
from tests.support.scripted_kafka import ScriptedKafka, in_a_thread, metadata_of

ROWS = [
    {"group_id": each, "protocol_type": "consumer", "group_state": "Stable", "group_type": "classic"}
    for each in ("mail", "billing")
]


def test_groups(cli: Cli) -> None:
    with in_a_thread(ScriptedKafka({LIST_GROUPS: lambda _: {"groups": ROWS}})) as node:
        asked = ("kafka", "groups", "list", "--bootstrap", node.address)
        assert cli(*asked).out == "billing\nmail\n"
        said = json.loads(cli(*asked, "--state", "Stable", "--format", "json").out)
        assert said[0] == {
            "group_id": "billing",
            "protocol_type": "consumer",
            "state": "Stable",
            "type": "classic",
        }
        assert node.of(LIST_GROUPS)[-1]["states_filter"] == ["Stable"]
        assert "2 groups" in cli(*asked, "--format", "table").out


@pytest.mark.parametrize("leaders", [(1, -1, 1), (1, 1, 1)])
def test_groups_that_no_node_keeps_now_are_said_to_be_missing(cli: Cli, leaders: tuple[int, ...]) -> None:
    partitions = [
        {"partition_index": index, "leader_id": leader, "replica_nodes": [2], "isr_nodes": [2]}
        for index, leader in enumerate(leaders)
    ]
    topics = [{"name": "__consumer_offsets", "partitions": partitions}]
    node = ScriptedKafka({LIST_GROUPS: lambda _: {"groups": ROWS}})
    node.handlers[METADATA] = lambda asked: metadata_of(node, topics=topics if asked.value["topics"] else [])
    with in_a_thread(node):
        said = cli("kafka", "groups", "list", "--bootstrap", node.address)
    assert said.out == "billing\nmail\n"
    lost = "1 of 3 partitions of __consumer_offsets, which keep them, have no node now"
    missing = f"broker-core: groups are missing: {lost}\n"
    assert (said.code, said.err) == ((1, missing) if -1 in leaders else (0, ""))


@pytest.mark.parametrize("form", ["names", "json"])
def test_why_there_are_none_is_said_if_the_server_has_no_groups(cli: Cli, form: str) -> None:
    groups: list[dict[str, str]] = []
    node = ScriptedKafka({LIST_GROUPS: lambda _: {"groups": groups}})
    with in_a_thread(node):
        asked = ("kafka", "groups", "list", "--bootstrap", node.address, "--format", form)
        said = cli(*asked)
        assert (said.code, said.out) == (0, "" if form == "names" else "[]\n")
        assert said.err == (
            "broker-core: this server keeps no groups: it has no messages that they could consume\n"
        )
        node.handlers[OFFSET_COMMIT] = lambda _: None  # as every node of Kafka has it
        assert cli(*asked).err == ""
