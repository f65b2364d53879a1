"""The types of Kafka's configs: reading a value as Java does, and writing it as Kafka does.

Recorded from Apache Kafka 4.3.1 (``tests/vectors/kafka-4.3.1-config-values.json``).
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from enum import IntEnum
from typing import Final, TypeAlias

from broker_core.errors import BrokerCoreError

__all__ = ["ConfigType", "ConfigValue", "InvalidConfig", "parse_value", "refused", "value_text"]

#: A value of a config, by its type.
ConfigValue: TypeAlias = "bool | int | float | str | tuple[str, ...]"

#: Decimal digits of every script, as ``Integer.parseInt`` takes them, which knows no characters beyond U+FFFF.
_INTEGER: Final = re.compile(r"[+-]?\d+")
_DECIMAL: Final = re.compile(r"[+-]?(?:NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]?)")
_HEXADECIMAL: Final = re.compile(
    r"([+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)[fFdD]?"
)
#: The characters that ``String.trim`` removes.
_BLANKS: Final = "".join(map(chr, range(0x21)))
_COMMA: Final = re.compile(r"[ \t\n\x0b\f\r]*,[ \t\n\x0b\f\r]*")


class ConfigType(IntEnum):
    """The type of a config, by its number in DescribeConfigs."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    LONG = 5
    DOUBLE = 6
    LIST = 7


class InvalidConfig(BrokerCoreError):
    """A config that Kafka refuses (code 40); the message is Kafka's."""


def refused(name: str, value: object, why: str) -> InvalidConfig:
    """The error for an invalid value."""
    return InvalidConfig(f"Invalid value {value} for configuration {name}: {why}")


def parse_value(kind: ConfigType, name: str, text: str) -> ConfigValue:
    """The value of a text. Raises :exc:`InvalidConfig`."""
    trimmed = text.strip(_BLANKS)
    if kind is ConfigType.BOOLEAN:
        if trimmed.lower() not in ("true", "false"):
            raise refused(name, text, "Expected value to be either true or false")
        return trimmed.lower() == "true"
    if kind is ConfigType.LIST:
        return tuple(_COMMA.split(trimmed)) if trimmed else ()
    if kind is ConfigType.STRING:
        return trimmed
    number = _double(trimmed) if kind is ConfigType.DOUBLE else _integer(kind, trimmed)
    if number is None:
        raise refused(name, text, f"Not a number of type {kind.name}")
    return number


def value_text(value: ConfigValue) -> str:
    """The text that DescribeConfigs shows of a value."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(value)
    return _double_text(value) if isinstance(value, float) else str(value)


def _integer(kind: ConfigType, text: str) -> int | None:
    if not _INTEGER.fullmatch(text) or max(text) > "\uffff":
        return None
    try:
        number = int(text)
    except ValueError:  # of more than 4,300 digits
        return None
    bits = 31 if kind is ConfigType.INT else 63
    return number if -(1 << bits) <= number < 1 << bits else None


def _double(text: str) -> float | None:
    if _DECIMAL.fullmatch(text):
        return float(text if text[-1] in "Ny" else text.rstrip("fFdD"))
    hexadecimal = _HEXADECIMAL.fullmatch(text)
    if hexadecimal is None:
        return None
    try:
        return float.fromhex(hexadecimal[1])
    except OverflowError:
        return -math.inf if text.startswith("-") else math.inf


def _double_text(value: float) -> str:
    """Text of a number as Java's ``Double.toString`` writes it."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    number = Decimal(repr(value)).normalize()
    first, *rest = map(str, number.as_tuple().digits)
    return f"{'-' if value < 0 else ''}{first}.{''.join(rest) or '0'}E{number.adjusted()}"
