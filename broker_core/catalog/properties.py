"""Properties of topics: checked, and as the one text that a catalogue stores for the same properties."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from broker_core.catalog.errors import TopicInvalid

__all__ = ["MAX_PROPERTIES_BYTES", "check_properties", "checked_text", "properties_of", "properties_text"]

#: The most bytes (JSON, UTF-8) that the properties of one topic may take.
MAX_PROPERTIES_BYTES: Final = 65_536

_NONE: Final[Mapping[str, str]] = MappingProxyType({})
_quoted = json.encoder.encode_basestring


def properties_text(properties: Mapping[str, str]) -> str:
    """Properties as JSON with sorted keys and without white space."""
    return "{" + ",".join([f"{_quoted(key)}:{_quoted(properties[key])}" for key in sorted(properties)]) + "}"


def properties_of(text: str | None) -> Mapping[str, str]:
    """The reverse of :func:`properties_text`, read-only; ``NULL`` is none."""
    return _NONE if text is None or text == "{}" else MappingProxyType(json.loads(text))


def check_properties(properties: object) -> dict[str, str]:
    """A copy of what can be properties; else a :exc:`TopicInvalid` says why not."""
    checked_text(properties)
    assert isinstance(properties, Mapping)
    return dict(properties)


def checked_text(properties: object) -> str:
    """The text of what can be properties (strings by strings, as in Pulsar); else a :exc:`TopicInvalid`."""
    if not isinstance(properties, Mapping):
        raise TopicInvalid(f"properties must be an object of strings, not {_kind(properties)}")
    for key, value in properties.items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise TopicInvalid(f"the value of property {key!r} must be a string, not {_kind(value)}")
    text = properties_text(properties)
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise TopicInvalid("properties are not valid Unicode (a lone surrogate)") from None
    if size > MAX_PROPERTIES_BYTES:
        raise TopicInvalid(f"properties take {size} bytes, at most {MAX_PROPERTIES_BYTES}")
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
