"""The values that a config may have, beyond its type; the messages are those of Kafka."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, TypeAlias

from broker_core.kafka.configs.config_types import ConfigValue, InvalidConfig, refused, value_text

__all__ = ["ValueRule", "anything", "between", "gzip_level", "one_of", "some_of", "throttled_replicas"]

#: Raises :exc:`~.config_types.InvalidConfig`, given the name of the config and its value.
ValueRule: TypeAlias = Callable[[str, ConfigValue], None]

_REPLICA: Final = re.compile(r"([0-9]+:[0-9]+)?")


def anything(_name: str, _value: ConfigValue) -> None:
    """Accept every value of the type."""


def between(least: int, most: int | None = None) -> ValueRule:
    """A rule that accepts numbers of a range, both ends included."""

    def check(name: str, value: ConfigValue) -> None:
        assert isinstance(value, int | float)
        if value < least:
            raise refused(name, value_text(value), f"Value must be at least {least}")
        if most is not None and value > most:
            raise refused(name, value_text(value), f"Value must be no more than {most}")

    return check


def gzip_level(name: str, value: ConfigValue) -> None:
    """Accept a level of gzip, or its default."""
    if value not in (-1, *range(1, 10)):
        raise refused(name, value, "Value must be between 1 and 9 or equal to -1")


def one_of(*choices: str) -> ValueRule:
    """A rule that accepts one of ``choices``."""

    def check(name: str, value: ConfigValue) -> None:
        if value not in choices:
            raise refused(name, value, f"String must be one of: {', '.join(choices)}")

    return check


def some_of(*choices: str) -> ValueRule:
    """A rule that accepts a list of ``choices``."""
    check_one = one_of(*choices)

    def check(name: str, value: ConfigValue) -> None:
        assert isinstance(value, tuple)
        if "" in value:
            raise InvalidConfig(f"Configuration '{name}' values must not be empty.")
        for word in value:
            check_one(name, word)

    return check


def throttled_replicas(name: str, value: ConfigValue) -> None:
    """Accept partitions and brokers, or all."""
    assert isinstance(value, tuple)
    if value != ("*",) and not all(map(_REPLICA.fullmatch, value)):
        raise refused(
            name,
            f"[{', '.join(value)}]",
            f"{name} must be the literal '*' or a list of replicas in the following format: "
            "[partitionId]:[brokerId],[partitionId]:[brokerId],...",
        )
