from __future__ import annotations

import json

from broker_core.wire.kafka import DESCRIBE_CLUSTER, Fields
from tests.cli.conftest import Cli
from tests.support.scripted_kafka import ScriptedKafka, in_a_thread

CLUSTER: Fields = {
    "cluster_id": "c-1",
    "controller_id": 2,
    "brokers": [
        {"broker_id": 2, "host": "b", "port": 9092, "rack": "r"},
        {"broker_id": 1, "host": "a", "port": 9092},
    ],
}


def test_nodes(cli: Cli) -> None:
    with in_a_thread(ScriptedKafka({DESCRIBE_CLUSTER: lambda _: CLUSTER})) as server:
        asked = ("kafka", "cluster", "describe", "--bootstrap", server.address)
        assert json.loads(cli(*asked, "--format", "json").out) == {
            "cluster_id": "c-1",
            "controller": 2,
            "nodes": [
                {"id": 1, "host": "a", "port": 9092, "rack": None},
                {"id": 2, "host": "b", "port": 9092, "rack": "r"},
            ],
        }
        shown = cli(*asked).out
        assert "cluster c-1" in shown
        assert shown.count("yes") == 1
