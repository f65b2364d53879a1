"""Kafka's topic configs: definitions, checks, effective values."""

from __future__ import annotations

from broker_core.kafka.configs.config_checks import (
    broker_config_faults,
    check_configs,
    fault_of_given,
    sound_configs,
)
from broker_core.kafka.configs.config_operations import (
    ConfigChange,
    ConfigOperation,
    altered,
)
from broker_core.kafka.configs.config_types import ConfigType, InvalidConfig
from broker_core.kafka.configs.definitions import DEFINITIONS, ConfigDefinition
from broker_core.kafka.configs.documentation import DOCUMENTATION
from broker_core.kafka.configs.effective import (
    ConfigSource,
    ConfigSynonym,
    EffectiveConfig,
    config_synonyms,
    effective_config,
)

__all__ = [
    "DEFINITIONS",
    "DOCUMENTATION",
    "ConfigChange",
    "ConfigDefinition",
    "ConfigOperation",
    "ConfigSource",
    "ConfigSynonym",
    "ConfigType",
    "EffectiveConfig",
    "InvalidConfig",
    "altered",
    "broker_config_faults",
    "check_configs",
    "config_synonyms",
    "effective_config",
    "fault_of_given",
    "sound_configs",
]
