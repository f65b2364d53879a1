from __future__ import annotations

import uuid

from broker_core.wire.kafka import DELETE_TOPICS, ZERO_ID
from tests.cli.conftest import Cli
from tests.support.scripted_kafka import ScriptedKafka, in_a_thread

ID = uuid.UUID("92c7faad-4a23-4b68-94ec-39c8ac9cc796")


def test_by_name(cli: Cli) -> None:
    rows = [{"name": "orders", "topic_id": ID}, {"name": "none", "error_code": 3, "error_message": "unknown"}]
    with in_a_thread(ScriptedKafka({DELETE_TOPICS: lambda _: {"responses": rows}})) as server:
        said = cli("kafka", "topics", "delete", "orders", "none", "--bootstrap", server.address)
        assert (said.code, said.out) == (1, "deleted orders\n")
        assert said.err == "broker-core: none: UNKNOWN_TOPIC_OR_PARTITION: unknown\n"
        said = cli(
            *("kafka", "topics", "delete", "orders", "none", "--if-exists", "--bootstrap", server.address)
        )
        assert (said.code, said.out, said.err) == (0, "deleted orders\n", "")


def test_by_id(cli: Cli) -> None:
    rows = [{"name": "orders", "topic_id": ID}]
    with in_a_thread(ScriptedKafka({DELETE_TOPICS: lambda _: {"responses": rows}})) as server:
        said = cli("kafka", "topics", "delete", "--id", str(ID), "--bootstrap", server.address)
        assert (said.code, said.out) == (0, "deleted ksf6rUojS2iU7DnIrJzHlg\n")
        assert server.of(DELETE_TOPICS)[0]["topics"] == [{"name": None, "topic_id": ID}]


def test_the_zero_id_is_sent(cli: Cli) -> None:
    rows = [{"topic_id": ZERO_ID, "error_code": 42, "error_message": "neither"}]
    with in_a_thread(ScriptedKafka({DELETE_TOPICS: lambda _: {"responses": rows}})) as server:
        said = cli("kafka", "topics", "delete", "--id", "A" * 22, "--bootstrap", server.address)
        assert "INVALID_REQUEST: neither" in said.only_error
