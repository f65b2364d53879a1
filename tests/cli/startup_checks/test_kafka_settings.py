from __future__ import annotations

from typing import Any

import pytest

from broker_core.cli.startup_checks.kafka_settings import (
    kafka_configs_checks,
    kafka_replication_checks,
    kafka_sasl_checks,
)
from broker_core.settings import Settings
from tests.cli.startup_checks.findings import levels, settings, text

ALL = ["PLAIN", "SCRAM-SHA-256"]
NOBODY = "they have no role, and no rule allows them anything"
BASIC = {"methods": ["basic"], "basic": {"file": "users"}}


def test_defaults_of_topic_configs_are_checked_by_name_and_value() -> None:
    found = list(kafka_configs_checks(settings(kafka={"configs": {"retention.ms": "5"}})))
    assert levels(found) == {"kafka.configs": "ok"}
    found = list(kafka_configs_checks(settings(kafka={"configs": {"retention.ms": "-2"}})))
    assert levels(found) == {"kafka.configs": "error"}
    assert "Invalid value -2 for configuration retention.ms" in text(found, "kafka.configs")


def test_all_that_is_wrong_is_told() -> None:
    configs = {
        "nonsense": "1",
        "retention.ms": "x",
        "min.compaction.lag.ms": "6",
        "max.compaction.lag.ms": "5",
    }
    found = list(kafka_configs_checks(settings(kafka={"configs": configs})))
    assert [each.level for each in found] == ["error"] * 3
    assert "nonsense" in found[0].text
    assert "retention.ms" in found[1].text
    assert "min.compaction.lag.ms (6) > max.compaction.lag.ms (5)" in found[2].text


def test_nothing_is_said_where_there_are_none() -> None:
    assert list(kafka_configs_checks(settings())) == []
    assert list(kafka_configs_checks(settings(kafka={}))) == []


def test_more_replicas_than_nodes_are_told() -> None:
    found = list(kafka_replication_checks(settings(kafka={"replication_factor": 3})))
    assert levels(found) == {"kafka.replication_factor": "warning"}
    assert "3 replicas need as many nodes" in text(found, "kafka.replication_factor")


@pytest.mark.parametrize("kafka", [None, {}, {"replication_factor": 3, "replication": "record"}])
def test_nothing_is_said_where_topics_can_be_made(kafka: dict[str, object] | None) -> None:
    assert list(kafka_replication_checks(settings(**({} if kafka is None else {"kafka": kafka})))) == []


@pytest.mark.parametrize(
    ("tables", "found"),
    [
        ({}, []),
        ({"kafka": {}}, []),
        ({"kafka": {"sasl": {"mechanisms": ALL}}}, ["ok PLAIN, SCRAM-SHA-256"]),
        (
            {"kafka": {"sasl": {"mechanisms": ["OAUTHBEARER"]}}},
            ["error 'OAUTHBEARER' cannot be used: it needs 'token' in authentication.methods"],
        ),
        (
            {"kafka": {"sasl": {"mechanisms": ["OAUTHBEARER"]}}, "plugins": {"enabled": ["mine"]}},
            ["warning 'OAUTHBEARER' cannot be used: it needs 'token' in authentication.methods"],
        ),
        (
            {"kafka": {}, "authentication": BASIC},
            [f"warning Kafka clients are asked for no credentials: {NOBODY}"],
        ),
    ],
)
def test_what_is_said_of_mechanisms(tables: dict[str, Any], found: list[str]) -> None:
    checks = list(kafka_sasl_checks(Settings.model_validate(tables)))
    assert [f"{check.level} {check.text}" for check in checks] == found
