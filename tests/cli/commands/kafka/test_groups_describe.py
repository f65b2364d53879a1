from __future__ import annotations

import json

from broker_core.wire.kafka import (
    CONSUMER_GROUP_DESCRIBE,
    DESCRIBE_GROUPS,
    FIND_COORDINATOR,
    METADATA,
    OFFSET_FETCH,
)
from tests.cli.conftest import Cli
from tests.support.scripted_kafka import Asked, ScriptedKafka, in_a_thread, metadata_of


def classic(asked: Asked) -> dict[str, object]:
    member = {"member_id": "m-1", "client_id": "c", "client_host": "/10.0.0.1"}
    rows: dict[str, dict[str, object]] = {
        "billing": {"group_state": "Stable", "protocol_data": "range", "members": [member]},
        "mail": {"error_code": 69, "error_message": "Group mail is not a classic group."},
    }
    missing = {"error_code": 69, "error_message": "not found"}
    return {"groups": [{"group_id": each, **rows.get(each, missing)} for each in asked.value["groups"]]}


def consumers(asked: Asked) -> dict[str, object]:
    mail = {"group_state": "Empty", "assignor_name": "uniform"}
    missing = {"error_code": 69, "error_message": "not found"}
    return {
        "groups": [
            {"group_id": each, **(mail if each == "mail" else missing)} for each in asked.value["group_ids"]
        ]
    }


def offsets(asked: Asked) -> dict[str, object]:
    topics = [{"name": "orders", "partitions": [{"partition_index": 0, "committed_offset": 7}]}]
    return {"groups": [{"group_id": each["group_id"], "topics": topics} for each in asked.value["groups"]]}


def node() -> ScriptedKafka:
    return ScriptedKafka(
        {DESCRIBE_GROUPS: classic, CONSUMER_GROUP_DESCRIBE: consumers, OFFSET_FETCH: offsets}
    )


def test_groups_of_both_protocols(cli: Cli) -> None:
    with in_a_thread(node()) as server:
        asked = ("kafka", "groups", "describe", "billing", "mail", "--bootstrap", server.address)
        said = json.loads(cli(*asked, "--offsets", "--format", "json").out)
        assert [(row["group"], row["state"], row["protocol"], len(row["members"])) for row in said] == [
            ("billing", "Stable", "range", 1),
            ("mail", "Empty", "uniform", 0),
        ]
        assert said[0]["offsets"] == [{"topic": "orders", "partition": 0, "offset": 7}]
        shown = cli(*asked, "--offsets").out
        assert "m-1" in shown
        assert "orders" in shown


def test_a_group_that_is_not_there(cli: Cli) -> None:
    with in_a_thread(node()) as server:
        said = cli("kafka", "groups", "describe", "none", "billing", "--bootstrap", server.address)
        assert said.code == 1
        assert said.err == "broker-core: none: GROUP_ID_NOT_FOUND: not found\n"
        assert "billing" in said.out


def test_each_group_has_its_outcome_though_a_node_is_gone(cli: Cli) -> None:
    known, gone = node(), ScriptedKafka(node_id=9)
    keepers = {"billing": {"node_id": known.node_id}, "far": {"node_id": 9}, "lost": {"error_code": 15}}
    known.handlers[FIND_COORDINATOR] = lambda asked: {
        "coordinators": [{"key": each, **keepers[each]} for each in asked.value["coordinator_keys"]]
    }
    with in_a_thread(known) as server:
        with in_a_thread(gone):
            known.handlers[METADATA] = lambda _: metadata_of(known, gone)
        said = cli("kafka", "groups", "describe", *keepers, "--bootstrap", server.address)
    assert said.code == 1
    assert "billing" in said.out
    far, lost = said.err.splitlines()
    assert far.startswith("broker-core: far: ")
    assert lost.startswith("broker-core: lost: COORDINATOR_NOT_AVAILABLE: ")


def test_a_node_that_keeps_a_group_no_more_has_the_others(cli: Cli) -> None:
    def moved(asked: Asked) -> dict[str, object]:
        rows = [
            {"group_id": each, "error_code": 16 if each == "moved" else 0} for each in asked.value["groups"]
        ]
        return {"groups": rows}

    with in_a_thread(ScriptedKafka({DESCRIBE_GROUPS: moved})) as server:
        said = cli("kafka", "groups", "describe", "moved", "billing", "--bootstrap", server.address)
    assert (said.code, said.err) == (
        1,
        "broker-core: moved: NOT_COORDINATOR: This is not the correct coordinator.\n",
    )
    assert "billing" in said.out
