"""The changes of IncrementalAlterConfigs to a topic's configs: setting, removing, and changing lists."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import NamedTuple

from broker_core.kafka.configs.config_types import ConfigType, InvalidConfig
from broker_core.kafka.configs.definitions import DEFINITIONS

__all__ = ["ConfigChange", "ConfigOperation", "altered"]


class ConfigOperation(IntEnum):
    """Operations, with their numbers in a request."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ConfigChange(NamedTuple):
    """A change of one config; ``DELETE`` ignores ``value``."""

    name: str
    operation: ConfigOperation
    value: str


def altered(
    configs: Mapping[str, str], changes: Iterable[ConfigChange], broker: Mapping[str, str]
) -> dict[str, str]:
    """The configs of a topic after changes, whose values are not checked; ``broker`` are the configs of the settings.

    A list that the topic does not have itself starts from the effective one. Raises
    :exc:`~.config_types.InvalidConfig` for a list operation on another type.
    """
    after = dict(configs)
    for name, operation, value in changes:
        if operation is ConfigOperation.SET:
            after[name] = value
        elif operation is ConfigOperation.DELETE:
            after.pop(name, None)
        elif name not in DEFINITIONS or DEFINITIONS[name].kind is not ConfigType.LIST:
            raise InvalidConfig(f"Can't {operation.name} to key {name} because its type is not LIST.")
        else:
            before = configs.get(name, broker.get(name, DEFINITIONS[name].default))
            after[name] = ",".join(
                _list_after([part for part in before.split(",") if part], operation, value)
            )
    return after


def _list_after(parts: list[str], operation: ConfigOperation, value: str) -> list[str]:
    """The list after an operation, split as in Java: without empty elements at the end, but the empty text is one."""
    given = value.rstrip(",").split(",") if value.strip(",") or not value else []
    if operation is ConfigOperation.SUBTRACT:
        return [part for part in parts if part not in given]
    for part in given:
        if part not in parts:
            parts.append(part)
    return parts
