from __future__ import annotations

from broker_core.cli.startup_checks.kafka_configs import kafka_configs_checks
from tests.cli.startup_checks.findings import levels, settings, text


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
