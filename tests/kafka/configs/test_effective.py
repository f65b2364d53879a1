from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from broker_core.kafka.configs import DEFINITIONS, config_synonyms, effective_config
from broker_core.kafka.configs.documentation import DOCUMENTATION
from tests.support.kafka_config_vectors import config_vectors


def _row(name: str, own: Mapping[str, str], broker: Mapping[str, str]) -> dict[str, Any]:
    definition = DEFINITIONS[name]
    config = effective_config(definition, own, broker)
    return {
        "name": name,
        "value": definition.shown(config.value),
        "config_source": config.source,
        "config_type": definition.kind,
        "read_only": False,
        "is_sensitive": False,
        "synonyms": [list(synonym) for synonym in config_synonyms(definition, own, broker)],
    }


def test_a_topic_without_configs_is_described_as_by_kafka() -> None:
    expected = config_vectors()["described"]
    assert [
        row | {"documentation": DOCUMENTATION[row["name"]]} for row in _rows(expected, {}, {})
    ] == expected
    assert [row["name"] for row in expected] == list(DEFINITIONS) == list(DOCUMENTATION)


@pytest.mark.parametrize(
    ("part", "own", "broker"),
    [
        ("described_own", True, False),
        ("described_with_broker", False, True),
        ("described_own_with_broker", True, True),
    ],
)
def test_own_configs_go_before_those_of_the_broker(part: str, own: bool, broker: bool) -> None:
    vectors = config_vectors()
    expected = vectors[part]
    assert _rows(expected, vectors["own"] if own else {}, vectors["broker"] if broker else {}) == expected


def test_a_create_answers_values_as_they_were_written() -> None:
    vectors = config_vectors()
    configs = [effective_config(definition, vectors["own"], {}) for definition in DEFINITIONS.values()]
    assert [[config.name, config.value, config.source] for config in configs] == vectors["created"]


def test_a_default_in_another_unit_is_a_synonym_of_a_broker_config_that_is_set() -> None:
    retention = DEFINITIONS["retention.ms"]
    assert config_synonyms(retention, {}, {}) == []
    assert [list(each) for each in config_synonyms(retention, {}, {"retention.ms": " 05"})] == [
        ["log.retention.ms", "5", 4],
        ["log.retention.hours", "168", 5],
    ]


def test_the_broker_config_of_the_settings_goes_before_the_default_of_the_cluster() -> None:
    replicas = DEFINITIONS["min.insync.replicas"]
    assert effective_config(replicas, {}, {}).source == 3
    assert effective_config(replicas, {}, {"min.insync.replicas": "2"}).source == 4


def _rows(
    expected: list[dict[str, Any]], own: Mapping[str, str], broker: Mapping[str, str]
) -> list[dict[str, Any]]:
    return [_row(row["name"], own, broker) for row in expected]
