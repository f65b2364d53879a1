"""Properties of topics: their check, and the canonical text that a catalogue stores."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal

from broker_core.catalog.catalog_errors import TopicInvalid

__all__ = [
    "MAX_PROPERTIES_BYTES",
    "check_properties",
    "checked_text",
    "configs_text",
    "properties_of",
    "properties_text",
]

#: The most bytes (JSON, UTF-8) that the properties of one topic may take, and so may its configs.
MAX_PROPERTIES_BYTES: Final = 65_536

_What = Literal["properties", "configs"]
_NONE: Final[Mapping[str, str]] = MappingProxyType({})
_quoted = json.encoder.encode_basestring


def properties_text(properties: Mapping[str, str]) -> str:
    """Properties as JSON with sorted keys and without white space."""
    if not properties:
        return "{}"
    return "{" + ",".join([f"{_quoted(key)}:{_quoted(properties[key])}" for key in sorted(properties)]) + "}"


def configs_text(configs: Mapping[str, str]) -> str | None:
    """Configs of Kafka in the same form; none are ``NULL``."""
    return properties_text(configs) if configs else None


def properties_of(text: str | None) -> Mapping[str, str]:
    """The reverse of :func:`properties_text` and :func:`configs_text`, read-only; ``NULL`` is none."""
    return _NONE if text is None or text == "{}" else MappingProxyType(json.loads(text))


def check_properties(properties: object, what: _What = "properties") -> dict[str, str]:
    """A copy of valid properties, or configs; a :exc:`TopicInvalid` says why others are not."""
    if type(properties) is dict and not properties:
        return {}
    checked_text(properties, what)
    assert isinstance(properties, Mapping)
    return dict(properties)


def checked_text(properties: object, what: _What = "properties") -> str:
    """The text of valid properties (strings by strings, as in Pulsar); a :exc:`TopicInvalid` for others."""
    if not isinstance(properties, Mapping):
        raise TopicInvalid(f"{what} must be an object of strings, not {_kind(properties)}")
    for key, value in properties.items():
        if not isinstance(key, str) or not isinstance(value, str):
            one = "property" if what == "properties" else "config"
            raise TopicInvalid(f"the value of {one} {key!r} must be a string, not {_kind(value)}")
    text = properties_text(properties)
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise TopicInvalid(f"{what} are not valid Unicode (a lone surrogate)") from None
    if size > MAX_PROPERTIES_BYTES:
        raise TopicInvalid(f"{what} take {size} bytes, at most {MAX_PROPERTIES_BYTES}")
    return text


def _kind(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, int | float):
        return "a number"
    return (
        "a list"
        if isinstance(value, list | tuple)
        else "an object"
        if isinstance(value, Mapping)
        else "a string"
    )
