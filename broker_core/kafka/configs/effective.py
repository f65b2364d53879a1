"""The configs that a topic has in effect: its own, else the broker's, else Kafka's default; and where each is from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from broker_core.kafka.configs.definitions import MIN_INSYNC_REPLICAS, ConfigDefinition

__all__ = [
    "ConfigSource",
    "ConfigSynonym",
    "EffectiveConfig",
    "config_synonyms",
    "effective_config",
]


class ConfigSource(IntEnum):
    """Where a value is from, by its number in answers."""

    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5


class ConfigSynonym(NamedTuple):
    """One of the configs that a value can be from."""

    name: str
    value: str
    source: ConfigSource


@dataclass(frozen=True, slots=True)
class EffectiveConfig:
    """``value`` is as it was written; ``definition.shown`` is what DescribeConfigs has."""

    definition: ConfigDefinition
    value: str
    source: ConfigSource

    @property
    def name(self) -> str:
        return self.definition.name


def effective_config(
    definition: ConfigDefinition, configs: Mapping[str, str], broker: Mapping[str, str]
) -> EffectiveConfig:
    """One of a topic's configs; ``configs`` are its own, ``broker`` those of the settings.

    A cluster of Kafka 4.3 is made with a default of ``min.insync.replicas`` for all brokers; that of a broker's
    settings goes before it here, since there is no cluster to ask.
    """
    name = definition.name
    if name in configs:
        return EffectiveConfig(definition, configs[name], ConfigSource.DYNAMIC_TOPIC_CONFIG)
    if name in broker:
        return EffectiveConfig(definition, broker[name], ConfigSource.STATIC_BROKER_CONFIG)
    if name == MIN_INSYNC_REPLICAS:
        return EffectiveConfig(definition, definition.default, ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG)
    return EffectiveConfig(definition, definition.default, ConfigSource.DEFAULT_CONFIG)


def config_synonyms(
    definition: ConfigDefinition, configs: Mapping[str, str], broker: Mapping[str, str]
) -> list[ConfigSynonym]:
    """The configs that the value of a topic's config can be from, the one that counts first."""
    name = definition.name
    found = []
    if name in configs:
        own = definition.shown(configs[name])
        found.append(ConfigSynonym(name, own, ConfigSource.DYNAMIC_TOPIC_CONFIG))
    first = definition.synonyms[0][0] if definition.synonyms else name
    if name in broker:
        given = definition.shown(broker[name])
        found.append(ConfigSynonym(first, given, ConfigSource.STATIC_BROKER_CONFIG))
    elif name == MIN_INSYNC_REPLICAS:
        found.append(ConfigSynonym(first, definition.default, ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG))
    # Kafka drops what is before the first synonym: its default is not shown where another one has it.
    if name in broker or (definition.synonyms and definition.synonyms[0][1] is not None):
        found.extend(
            ConfigSynonym(synonym, default, ConfigSource.DEFAULT_CONFIG)
            for synonym, default in definition.synonyms
            if default is not None
        )
    return found
