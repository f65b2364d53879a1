"""A schema as a broker's web service sends it."""

from __future__ import annotations

import json
import struct
from typing import Any, Final

from broker_core.compact_json import ascii_json
from broker_core.service import BrokerSchema

__all__ = ["schema_json"]

#: The names of the types by their numbers in the binary protocol.
_TYPES: Final = (
    *("NONE", "STRING", "JSON", "PROTOBUF", "AVRO", "BOOLEAN", "INT8", "INT16", "INT32", "INT64", "FLOAT"),
    *("DOUBLE", "DATE", "TIME", "TIMESTAMP", "KEY_VALUE", "INSTANT", "LOCAL_DATE", "LOCAL_TIME"),
    *("LOCAL_DATE_TIME", "PROTOBUF_NATIVE"),
)
_SIZE: Final = struct.Struct(">I")


def schema_json(schema: BrokerSchema) -> dict[str, Any]:
    """The schema as plain values. Raises :exc:`ValueError` for one that is none."""
    if not 0 <= schema.kind < len(_TYPES):
        raise ValueError(f"the type {schema.kind} of the schema is unknown")
    kind = _TYPES[schema.kind]
    return {
        "version": schema.version,
        "type": kind,
        "timestamp": 0,
        "data": _key_value(schema.data) if kind == "KEY_VALUE" else schema.data.decode(),
        "properties": dict(schema.properties),
    }


def _key_value(data: bytes) -> str:
    """Two schemas, each after its size, as one JSON object; a primitive one, which is empty, is ``""``."""
    parts = []
    for _ in range(2):
        if len(data) < _SIZE.size:
            raise ValueError("the schema of keys and values is cut")
        size = min(_SIZE.unpack_from(data)[0], len(data) - _SIZE.size)
        text, data = data[_SIZE.size : _SIZE.size + size], data[_SIZE.size + size :]
        parts.append(json.loads(text) if text else "")
    return ascii_json({"key": parts[0], "value": parts[1]})
