from __future__ import annotations

from collections.abc import Mapping

from broker_core.kafka.configs import InvalidConfig, broker_config_faults, check_configs
from tests.support.kafka_config_vectors import config_vectors


def _said(configs: Mapping[str, str], broker: Mapping[str, str]) -> str | None:
    try:
        check_configs(configs, broker)
    except InvalidConfig as error:
        return str(error)
    return None


def test_configs_are_taken_and_refused_as_kafka_does() -> None:
    different = [
        (configs, expected, _said(configs, {}))
        for configs, code, expected in config_vectors()["values"]
        if _said(configs, {}) != expected or code != (0 if expected is None else 40)
    ]
    assert different == []


def test_what_a_topic_does_not_set_is_the_brokers() -> None:
    assert _said({"min.compaction.lag.ms": "6"}, {"max.compaction.lag.ms": "5"}) == (
        "conflict topic config setting min.compaction.lag.ms (6) > max.compaction.lag.ms (5)"
    )


def test_the_defaults_of_a_broker_are_checked_as_those_of_a_topic() -> None:
    assert broker_config_faults({"retention.ms": "-1"}) == []
    found = broker_config_faults({"log.retention.ms": "5", "retention.ms": "-2", "segment.ms": "5"})
    assert [fault.partition(" for configuration ")[0] for fault in found] == [
        "Unknown topic config name: log.retention.ms",
        "Invalid value -2",
    ]


def test_a_value_is_no_longer_than_clients_can_be_told() -> None:
    name = "leader.replication.throttled.replicas"
    assert _said({name: ",".join(["10:100"] * 4681)}, {}) is None  # 32,766 bytes
    assert _said({name: ",".join(["10:100"] * 4682)}, {}) == (
        f"the value of {name} has 32773 bytes, at most 32767"
    )
