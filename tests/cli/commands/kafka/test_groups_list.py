from __future__ import annotations

import json

import pytest

from broker_core.wire.kafka import LIST_GROUPS, OFFSET_COMMIT
from tests.cli.conftest import Cli
from tests.support.scripted_kafka import ScriptedKafka, in_a_thread

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
