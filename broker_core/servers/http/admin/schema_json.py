"""A schema as a broker's web service tells it, made of the answer to GET_SCHEMA."""

from __future__ import annotations

import json
import struct
from typing import Any, Final

from broker_core.wire.pulsar import BaseCommand

__all__ = ["schema_json"]

#: The names of the types by their numbers in the binary protocol.
_TYPES: Final = (
    *("NONE", "STRING", "JSON", "PROTOBUF", "AVRO", "BOOLEAN", "INT8", "INT16", "INT32", "INT64", "FLOAT"),
    *("DOUBLE", "DATE", "TIME", "TIMESTAMP", "KEY_VALUE", "INSTANT", "LOCAL_DATE", "LOCAL_TIME"),
    *("LOCAL_DATE_TIME", "PROTOBUF_NATIVE"),
)
_SIZE: Final = struct.Struct(">I")
_VERSION: Final = struct.Struct(">q")


def schema_json(answer: BaseCommand) -> dict[str, Any]:
    """The schema as plain values. Raises :exc:`ValueError` for one that is none."""
    body = answer.getSchemaResponse
    schema = body.schema
    if not 0 <= schema.type < len(_TYPES):
        raise ValueError(f"the type {schema.type} of the schema is unknown")
    kind = _TYPES[schema.type]
    data = _key_value(schema.schema_data) if kind == "KEY_VALUE" else schema.schema_data.decode()
    version = body.schema_version
    return {
        "version": _VERSION.unpack(version)[0] if len(version) == _VERSION.size else 0,
        "type": kind,
        "timestamp": 0,
        "data": data,
        "properties": {pair.key: pair.value for pair in schema.properties},
    }


def _key_value(data: bytes) -> str:
    """Two schemas, each behind its size, as one JSON object; a primitive one, which is empty, is ``""``."""
    parts = []
    for _ in range(2):
        if len(data) < _SIZE.size:
            raise ValueError("the schema of keys and values is cut")
        size = min(_SIZE.unpack_from(data)[0], len(data) - _SIZE.size)
        text, data = data[_SIZE.size : _SIZE.size + size], data[_SIZE.size + size :]
        parts.append(json.loads(text) if text else "")
    return json.dumps({"key": parts[0], "value": parts[1]}, separators=(",", ":"))
