from __future__ import annotations

import json
import uuid

from broker_core.wire.kafka import DESCRIBE_TOPIC_PARTITIONS, METADATA
from tests.cli.conftest import Cli
from tests.support.scripted_kafka import ScriptedKafka, in_a_thread, metadata_of

ID = uuid.UUID("92c7faad-4a23-4b68-94ec-39c8ac9cc796")
PARTITIONS = [
    {"partition_index": 0, "leader_id": 1, "replica_nodes": [1, 2], "isr_nodes": [1]},
    {"partition_index": 1, "leader_id": -1, "replica_nodes": [1]},
]
ROW = {"name": "orders", "topic_id": ID, "partitions": PARTITIONS, "topic_authorized_operations": 1 << 8}
SHOWN = {
    "name": "orders",
    "topic_id": "ksf6rUojS2iU7DnIrJzHlg",
    "internal": False,
    "partitions": [
        {"partition": 0, "leader": 1, "replicas": [1, 2], "isr": [1]},
        {"partition": 1, "leader": None, "replicas": [1], "isr": []},
    ],
}


def node() -> ScriptedKafka:
    node = ScriptedKafka(
        {DESCRIBE_TOPIC_PARTITIONS: lambda _: {"topics": [ROW, {"name": "none", "error_code": 3}]}}
    )
    node.handlers[METADATA] = lambda _: metadata_of(node, topics=[ROW])
    return node


def test_topics_with_their_partitions(cli: Cli) -> None:
    with in_a_thread(node()) as server:
        said = cli(
            "kafka", "topics", "describe", "orders", "--operations", "--bootstrap", server.address
        ).printed
        for text in ("orders", "ksf6rUojS2iU7DnIrJzHlg", "1,2", "none", "DESCRIBE"):
            assert text in said


def test_one_that_is_not_there(cli: Cli) -> None:
    with in_a_thread(node()) as server:
        said = cli(
            "kafka", "topics", "describe", "orders", "none", "--format", "json", "--bootstrap", server.address
        )
        assert said.code == 1
        assert json.loads(said.out) == [SHOWN]
        assert said.err.startswith("broker-core: none: UNKNOWN_TOPIC_OR_PARTITION")


def test_of_none_there_is_no_table(cli: Cli) -> None:
    node = ScriptedKafka(
        {DESCRIBE_TOPIC_PARTITIONS: lambda _: {"topics": [{"name": "none", "error_code": 3}]}}
    )
    with in_a_thread(node) as server:
        said = cli("kafka", "topics", "describe", "none", "--bootstrap", server.address)
        assert (said.code, said.out) == (1, "")


def test_by_id(cli: Cli) -> None:
    with in_a_thread(node()) as server:
        asked = ("kafka", "topics", "describe", "--format", "json", "--bootstrap", server.address, "--id")
        for text in (str(ID), "ksf6rUojS2iU7DnIrJzHlg"):
            assert json.loads(cli(*asked, text).out) == [SHOWN]
        other = "AAAAAAAAAAAAAAAAAAAAAQ"
        assert cli(*asked, other).failed(1).startswith(f"broker-core: {other}: ")


def test_all_topics_without_names(cli: Cli) -> None:
    with in_a_thread(node()) as server:
        said = cli("kafka", "topics", "describe", "--format", "json", "--bootstrap", server.address)
        assert (said.code, json.loads(said.out)) == (0, [SHOWN])
        (asked,) = server.of(DESCRIBE_TOPIC_PARTITIONS)
        assert asked["topics"] == [{"name": "orders"}]


def test_missing_topics_may_be_passed_over(cli: Cli) -> None:
    with in_a_thread(node()) as server:
        asked = ("kafka", "topics", "describe", "orders", "none", "--format", "json", "--if-exists")
        said = cli(*asked, "--bootstrap", server.address)
        assert (said.code, json.loads(said.out), said.err) == (0, [SHOWN], "")
