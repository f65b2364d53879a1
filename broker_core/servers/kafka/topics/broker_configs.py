"""The configs of the one broker that clients see: values for new topics, and the defaults of topic configs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from broker_core.kafka.configs import (
    DEFINITIONS,
    DOCUMENTATION,
    ConfigSource,
    ConfigType,
    config_synonyms,
    effective_config,
)
from broker_core.settings import KafkaSettings
from broker_core.wire.kafka import Fields

__all__ = ["broker_configs"]


def broker_configs(kafka: KafkaSettings, *, of_all_brokers: bool = False) -> list[Fields]:
    """The configs with synonyms and documentation. All are read-only: they are in the settings.

    ``of_all_brokers``: only the ones that a cluster of Kafka 4.3 has for all brokers.
    """
    defaults = _topic_defaults(kafka.configs)
    if of_all_brokers:
        return [row for row in defaults if row["config_source"] == ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG]
    return sorted([*_own(kafka), *defaults], key=lambda row: str(row["name"]))


def _own(kafka: KafkaSettings) -> list[Fields]:
    rows: list[tuple[str, ConfigType, object, str]] = [
        ("auto.create.topics.enable", ConfigType.BOOLEAN, "false", "No topic is created by looking."),
        (
            "default.replication.factor",
            ConfigType.INT,
            kafka.replication_factor,
            "The replication factor of topics that are created without one.",
        ),
        ("delete.topic.enable", ConfigType.BOOLEAN, "true", "Topics can be deleted."),
        ("node.id", ConfigType.INT, kafka.node_id, "The id of the one node."),
        (
            "num.partitions",
            ConfigType.INT,
            kafka.num_partitions,
            "Partitions of topics that are created without a number of them.",
        ),
    ]
    source = ConfigSource.STATIC_BROKER_CONFIG
    return [
        {
            "name": name,
            "value": str(value),
            "read_only": True,
            "config_source": source,
            "synonyms": [{"name": name, "value": str(value), "source": source}],
            "config_type": kind,
            "documentation": text,
        }
        for name, kind, value, text in rows
    ]


def _topic_defaults(broker: Mapping[str, str]) -> list[Fields]:
    """The broker configs that topic configs inherit from, under the first of their names."""
    rows: list[Fields] = []
    for definition in DEFINITIONS.values():
        if not definition.synonyms:
            continue
        config = effective_config(definition, {}, broker)
        row: dict[str, Any] = {
            "name": definition.synonyms[0][0],
            "value": definition.shown(config.value),
            "read_only": True,
            "config_source": config.source,
            "synonyms": [each._asdict() for each in config_synonyms(definition, {}, broker)],
            "config_type": definition.kind,
            "documentation": DOCUMENTATION[definition.name],
        }
        rows.append(row)
    return rows
