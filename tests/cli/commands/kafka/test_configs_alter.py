from __future__ import annotations

from broker_core.wire.kafka import INCREMENTAL_ALTER_CONFIGS
from tests.cli.conftest import Cli
from tests.support.scripted_kafka import ScriptedKafka, in_a_thread


def test_changes(cli: Cli) -> None:
    rows = [
        {"resource_type": 2, "resource_name": "orders"},
        {"resource_type": 2, "resource_name": "none", "error_code": 3, "error_message": "unknown"},
    ]
    with in_a_thread(ScriptedKafka({INCREMENTAL_ALTER_CONFIGS: lambda _: {"responses": rows}})) as server:
        said = cli(
            *(
                "kafka",
                "configs",
                "alter",
                "orders",
                "none",
                "--set",
                "a=1=2",
                "--delete",
                "b",
                "--append",
                "c=x",
            ),
            *("--subtract", "d=y", "--validate-only", "--bootstrap", server.address),
        )
        assert (said.code, said.out) == (1, "would change orders\n")
        assert said.err == "broker-core: none: UNKNOWN_TOPIC_OR_PARTITION: unknown\n"
        (asked,) = server.of(INCREMENTAL_ALTER_CONFIGS)
        assert asked["resources"][0]["configs"] == [
            {"name": "a", "config_operation": 0, "value": "1=2"},
            {"name": "b", "config_operation": 1, "value": None},
            {"name": "c", "config_operation": 2, "value": "x"},
            {"name": "d", "config_operation": 3, "value": "y"},
        ]
        assert asked["validate_only"] is True


def test_no_change(cli: Cli) -> None:
    said = cli("kafka", "configs", "alter", "orders", "--bootstrap", "127.0.0.1:1").refused(2)
    assert said.startswith("nothing to change")
