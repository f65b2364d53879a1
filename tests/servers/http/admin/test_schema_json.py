"""Schemas in the form of a broker's web service."""

from __future__ import annotations

import json
import struct

import pytest

from broker_core.servers.http.admin.schema_json import schema_json
from broker_core.service import BrokerSchema


def _schema(kind: int, data: bytes) -> BrokerSchema:
    return BrokerSchema(kind, data, 3, {"made": "by hand"})


def test_a_schema() -> None:
    assert schema_json(_schema(2, b'{"type": "record"}')) == {
        "version": 3,
        "type": "JSON",
        "timestamp": 0,
        "data": '{"type": "record"}',
        "properties": {"made": "by hand"},
    }


def test_keys_and_values_are_one_object() -> None:
    key, value = b"", b'{"type": "record"}'
    data = b"".join(struct.pack(">I", len(each)) + each for each in (key, value))
    told = schema_json(_schema(15, data))
    assert told["type"] == "KEY_VALUE"
    assert json.loads(told["data"]) == {"key": "", "value": {"type": "record"}}


@pytest.mark.parametrize(
    ("kind", "data"), [(99, b""), (2, b"\xff"), (15, b"\0"), (15, b"\0\0\0\x01x\0\0\0\0")], ids=str
)
def test_what_is_no_schema(kind: int, data: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        schema_json(_schema(kind, data))
