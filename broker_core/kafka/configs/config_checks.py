"""Checks of a topic's configs: whether Kafka accepts them, and its messages if it does not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from broker_core.kafka.configs.config_types import ConfigValue, InvalidConfig
from broker_core.kafka.configs.definitions import DEFINITIONS, PARSE_ORDER

__all__ = [
    "broker_config_faults",
    "check_configs",
    "fault_of_given",
    "sound_configs",
]

#: Bytes of a text in most versions of Kafka's messages: no client could get a longer value.
_LONGEST: Final = 32_767


def check_configs(configs: Mapping[str, str], broker: Mapping[str, str]) -> None:
    """Raise :exc:`~.config_types.InvalidConfig` unless a topic can have these configs, with its others from
    ``broker``.
    """
    for name in configs:
        if name not in DEFINITIONS:
            raise InvalidConfig(f"Unknown topic config name: {name}")
        size = len(configs[name].encode(errors="replace"))
        if size > _LONGEST:
            raise InvalidConfig(f"the value of {name} has {size} bytes, at most {_LONGEST}")
    values: dict[str, ConfigValue] = {
        name: DEFINITIONS[name].parse(configs[name]) for name in PARSE_ORDER if name in configs
    }

    def value(name: str) -> ConfigValue:
        definition = DEFINITIONS[name]
        return values[name] if name in values else definition.parse(broker.get(name, definition.default))

    least, most = value("min.compaction.lag.ms"), value("max.compaction.lag.ms")
    assert isinstance(least, int)
    assert isinstance(most, int)
    if least > most:
        raise InvalidConfig(
            f"conflict topic config setting min.compaction.lag.ms ({least}) > max.compaction.lag.ms ({most})"
        )
    if value("remote.storage.enable"):
        raise InvalidConfig(
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage."
        )


def fault_of_given(given: Callable[[], Mapping[str, str]], broker: Mapping[str, str]) -> str:
    """Why a topic was refused configs, for a client that may set configs but not read them.

    ``given`` makes the result of the client's change for a topic without configs.
    """
    try:
        check_configs(given(), broker)
    except InvalidConfig as error:
        return str(error)
    return "The configs that the topic has do not allow the change"


def broker_config_faults(configs: Mapping[str, str]) -> list[str]:
    """The faults of a broker's defaults, by the names of topic configs."""
    return _sorted_out(configs)[1]


def sound_configs(configs: Mapping[str, str]) -> dict[str, str]:
    """The valid ones among unchecked configs."""
    sound, _ = _sorted_out(configs)
    return sound


def _sorted_out(configs: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """The configs that are valid one by one, and the faults of the others, or of the valid ones together."""
    faults: list[str] = []
    sound: dict[str, str] = {}
    for name, value in configs.items():
        try:
            check_configs({name: value}, {})
        except InvalidConfig as error:
            faults.append(str(error))
        else:
            sound[name] = value
    try:
        check_configs(sound, {})
    except InvalidConfig as error:
        faults.append(str(error))
    return sound, faults
