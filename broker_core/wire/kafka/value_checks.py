"""Validation of the fields of a Kafka message before a client sends it: servers only close the connection.

Fields that the version lacks are not checked: the caller has chosen the version.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any, Final

from broker_core.wire.kafka.fields import BOOLEAN, BYTES, FLOAT64, STRING, UUID, Array, Kind, Struct
from broker_core.wire.kafka.writer import Encoded, EncodedRows

__all__ = ["LONGEST_TEXT", "fault_of"]

#: Bytes of a text. Encodings with variable lengths could have longer ones, but servers accept none.
LONGEST_TEXT: Final = 32_767
#: Bits of a number by its letter in :mod:`struct`; those in capitals have no sign.
_BITS: Final = {"b": 8, "h": 16, "H": 16, "i": 32, "q": 64}
#: The types of the values of a kind, in words too.
_TYPES: Final[Mapping[Kind, tuple[tuple[type, ...], str]]] = {
    BOOLEAN: ((bool,), "True or False"),
    UUID: ((uuid.UUID,), "a uuid.UUID"),
    BYTES: ((bytes, bytearray, memoryview), "bytes"),
    FLOAT64: ((float, int), "a number"),
}
_SHOWN: Final = 50


def fault_of(struct: Struct, value: Mapping[str, Any], version: int) -> str | None:
    """The first field whose value cannot be sent by a version, and why; ``None`` if all can. Nulls of fields are not
    checked.
    """
    kinds = struct.kinds(version)
    for name, item in value.items():
        kind = kinds.get(name)
        fault = None if kind is None or item is None else _fault(kind, item, version)
        if fault is not None:
            return f"{name}{fault}"
    return None


def _fault(kind: Kind, value: Any, version: int) -> str | None:
    """The fault of a value, to follow the name of its field; it begins with the path to the value in the field."""
    if isinstance(kind, Struct):
        if not isinstance(value, Mapping):
            return _not("fields", value)
        fault = fault_of(kind, value, version)
        return None if fault is None else f".{fault}"
    if isinstance(kind, Array):
        return _fault_in(kind.of, value, version)
    if kind is STRING:
        return _fault_of_text(value)
    if kind in _TYPES:
        types, expected = _TYPES[kind]
        return None if isinstance(value, types) else _not(expected, value)
    return _fault_of_number(_BITS[kind.packed], kind.packed.isupper(), value)


def _fault_in(kind: Kind, values: Any, version: int) -> str | None:
    if isinstance(values, Encoded | EncodedRows):
        return None
    if not isinstance(values, list | tuple):
        return _not("a list", values)
    for number, value in enumerate(values):
        fault = ": null cannot be sent" if value is None else _fault(kind, value, version)
        if fault is not None:
            return f"[{number}]{fault}"
    return None


def _fault_of_text(value: Any) -> str | None:
    if not isinstance(value, str):
        return _not("text", value)
    if len(value) <= LONGEST_TEXT // 4 and value.isascii():
        return None
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        return f": {_shown(value)} is not valid Unicode (a lone surrogate)"
    return (
        None if size <= LONGEST_TEXT else f": {size} bytes of text, at most {LONGEST_TEXT}: {_shown(value)}"
    )


def _fault_of_number(bits: int, is_unsigned: bool, value: Any) -> str | None:
    if isinstance(value, bool) or not isinstance(value, int):
        return _not("a whole number", value)
    least, most = (0, 2**bits - 1) if is_unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    return None if least <= value <= most else f": {value} is not between {least} and {most}"


def _not(expected: str, value: object) -> str:
    return f": expected {expected}, not {type(value).__name__} {_shown(value)}"


def _shown(value: object) -> str:
    text = ascii(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
