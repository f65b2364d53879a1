from __future__ import annotations

import json

from broker_core.wire.kafka import DESCRIBE_CONFIGS, Fields
from tests.cli.conftest import Cli
from tests.support.scripted_kafka import Asked, ScriptedKafka, in_a_thread

CONFIGS = [
    {"name": "cleanup.policy", "value": "delete", "config_source": 5},
    {"name": "retention.ms", "value": "1", "config_source": 1},
    {"name": "secret", "value": None, "config_source": 4, "is_sensitive": True, "read_only": True},
]


def describe(asked: Asked) -> Fields:
    return {
        "results": [
            {
                "resource_type": each["resource_type"],
                "resource_name": each["resource_name"],
                "error_code": 3 * (each["resource_name"] == "none"),
                "configs": CONFIGS,
            }
            for each in asked.value["resources"]
        ]
    }


def test_a_table(cli: Cli) -> None:
    with in_a_thread(ScriptedKafka({DESCRIBE_CONFIGS: describe})) as server:
        said = cli("kafka", "configs", "describe", "orders", "none", "--bootstrap", server.address)
        assert said.code == 1
        for text in ("orders", "cleanup.policy", "DEFAULT_CONFIG", "DYNAMIC_TOPIC_CONFIG"):
            assert text in said.out
        assert said.err.startswith("broker-core: none: UNKNOWN_TOPIC_OR_PARTITION")


def test_what_is_no_default_of_a_node(cli: Cli) -> None:
    with in_a_thread(ScriptedKafka({DESCRIBE_CONFIGS: describe})) as server:
        said = cli(
            *("kafka", "configs", "describe", "--node", "1", "--changed", "--format", "json"),
            *("--bootstrap", server.address),
        )
        assert json.loads(said.out) == [
            {
                "resource": "node 1",
                "name": "retention.ms",
                "value": "1",
                "source": "DYNAMIC_TOPIC_CONFIG",
                "read_only": False,
                "sensitive": False,
            },
            {
                "resource": "node 1",
                "name": "secret",
                "value": None,
                "source": "STATIC_BROKER_CONFIG",
                "read_only": True,
                "sensitive": True,
            },
        ]
