from __future__ import annotations

import json
import uuid
from typing import Any

from broker_core.wire.kafka import CREATE_TOPICS, Fields
from tests.cli.conftest import Cli
from tests.support.scripted_kafka import Asked, ScriptedKafka, in_a_thread

ID = uuid.UUID("92c7faad-4a23-4b68-94ec-39c8ac9cc796")


def create(asked: Asked) -> Fields:
    rows: list[dict[str, Any]] = []
    for topic in asked.value["topics"]:
        row = {"name": topic["name"], "topic_id": ID, "num_partitions": 3, "replication_factor": 1}
        configs = [each | {"config_source": 1} for each in topic["configs"]]
        if topic["name"] == "there":
            rows.append({"name": "there", "error_code": 36, "error_message": "it exists"})
        elif topic["name"] == "hidden":
            rows.append({"name": "hidden", "topic_config_error_code": 29})
        else:
            rows.append(row | {"configs": configs})
    return {"topics": rows}


def test_topics_are_created(cli: Cli) -> None:
    with in_a_thread(ScriptedKafka({CREATE_TOPICS: create})) as server:
        said = cli(
            *(
                "kafka",
                "topics",
                "create",
                "orders",
                "hidden",
                "--partitions",
                "3",
                "--replication-factor",
                "1",
            ),
            *("--config-entry", "retention.ms=1", "--bootstrap", server.address),
        )
        assert said.out == "created orders with 3 partitions, id ksf6rUojS2iU7DnIrJzHlg\ncreated hidden\n"
        (asked,) = server.of(CREATE_TOPICS)
        assert [topic["num_partitions"] for topic in asked["topics"]] == [3, 3]
        assert asked["topics"][0]["configs"] == [{"name": "retention.ms", "value": "1"}]
        assert asked["validate_only"] is False


def test_one_that_fails_keeps_no_other_from_being_created(cli: Cli) -> None:
    with in_a_thread(ScriptedKafka({CREATE_TOPICS: create})) as server:
        said = cli("kafka", "topics", "create", "there", "orders", "--bootstrap", server.address)
        assert said.code == 1
        assert said.out.startswith("created orders")
        assert said.err == "broker-core: there: TOPIC_ALREADY_EXISTS: it exists\n"


def test_json(cli: Cli) -> None:
    with in_a_thread(ScriptedKafka({CREATE_TOPICS: create})) as server:
        said = cli(
            *("kafka", "topics", "create", "orders", "hidden", "--config-entry", "a=b", "--validate-only"),
            *("--format", "json", "--bootstrap", server.address),
        )
        assert json.loads(said.out) == [
            {
                "name": "orders",
                "topic_id": "ksf6rUojS2iU7DnIrJzHlg",
                "partitions": 3,
                "replication_factor": 1,
                "configs": {"a": "b"},
            },
            {
                "name": "hidden",
                "topic_id": None,
                "partitions": None,
                "replication_factor": None,
                "configs": None,
            },
        ]
        assert server.of(CREATE_TOPICS)[0]["validate_only"] is True


def test_a_config_that_is_none(cli: Cli) -> None:
    said = cli(
        "kafka", "topics", "create", "orders", "--config-entry", "x", "--bootstrap", "127.0.0.1:1"
    ).refused(2)
    assert "--config-entry 'x': expected KEY=VALUE" in said


def test_topics_that_are_there_may_be_passed_over(cli: Cli) -> None:
    with in_a_thread(ScriptedKafka({CREATE_TOPICS: create})) as server:
        asked = ("kafka", "topics", "create", "orders", "there", "--bootstrap", server.address)
        assert cli(*asked).code == 1
        said = cli(*asked, "--if-not-exists")
        assert (said.code, said.err) == (0, "")
        assert said.out.startswith("created orders")
        assert "there" not in said.out
