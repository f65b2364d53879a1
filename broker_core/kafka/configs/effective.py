"""The effective configs of a topic: its own, else the broker's, else Kafka's default; and the source of each."""

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
    """Sources of a value, with their numbers in answers."""

    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5


class ConfigSynonym(NamedTuple):
    """One of the configs that a value can come from."""

    name: str
    value: str
    source: ConfigSource


@dataclass(frozen=True, slots=True)
class EffectiveConfig:
    """An effective config. ``value`` is the given text; ``definition.shown`` gives that of DescribeConfigs."""

    definition: ConfigDefinition
    value: str
    source: ConfigSource

    @property
    def name(self) -> str:
        return self.definition.name


def effective_config(
    definition: ConfigDefinition, configs: Mapping[str, str], broker: Mapping[str, str]
) -> EffectiveConfig:
    """The effective value of a topic's config; ``configs`` are its own, ``broker`` the configs of the settings.

    A cluster of Kafka 4.3 is made with a default of ``min.insync.replicas`` for all brokers; here a broker's settings
    take precedence, since there is no cluster.
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
    """The configs that the value of a topic's config can come from, the effective one first."""
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
    # Kafka drops what is before the first synonym: its default is not shown if another one has it.
    if name in broker or (definition.synonyms and definition.synonyms[0][1] is not None):
        found.extend(
            ConfigSynonym(synonym, default, ConfigSource.DEFAULT_CONFIG)
            for synonym, default in definition.synonyms
            if default is not None
        )
    return found
