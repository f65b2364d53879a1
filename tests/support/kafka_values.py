"""Random values of Kafka's messages, drawn from the declared fields of an API and a version."""

from __future__ import annotations

from typing import Any, Final

from hypothesis import strategies as st

from broker_core.wire.kafka import Api, Fields, Reader
from broker_core.wire.kafka.fields import (
    BOOLEAN,
    BYTES,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    UINT16,
    UUID,
    Array,
    Field,
    Kind,
    Struct,
    Versions,
)
from broker_core.wire.kafka.writer import Writer

__all__ = ["assert_read_as_written", "messages", "values", "versions_of"]

_PLAIN: Final[dict[Kind, st.SearchStrategy[Any]]] = {
    BOOLEAN: st.booleans(),
    BYTES: st.binary(max_size=20),
    FLOAT64: st.floats(allow_nan=False),
    INT8: st.integers(-(2**7), 2**7 - 1),
    INT16: st.integers(-(2**15), 2**15 - 1),
    INT32: st.integers(-(2**31), 2**31 - 1),
    INT64: st.integers(-(2**63), 2**63 - 1),
    # Long ones too: the length of a compact text of 127 bytes has two bytes.
    STRING: st.text(st.characters(codec="utf-8"), max_size=8) | st.sampled_from(["é" * 63, "x" * 127]),
    UINT16: st.integers(0, 2**16 - 1),
    UUID: st.uuids(),
}


def values(message: Struct, version: int) -> st.SearchStrategy[Fields]:
    """Whole values of one version; fields that the version lacks have their defaults."""
    return st.fixed_dictionaries(
        {
            each.name: _value(each, version)
            if version in Versions.parse(each.versions)
            else st.just(each.start)
            for each in message.fields
        }
    )


def _value(each: Field, version: int) -> st.SearchStrategy[Any]:
    value = _of_kind(each.kind, version)
    return st.none() | value if version in Versions.parse(each.nullable) else value


def _of_kind(kind: Kind, version: int) -> st.SearchStrategy[Any]:
    if isinstance(kind, Struct):
        return values(kind, version)
    if isinstance(kind, Array):
        return st.lists(_of_kind(kind.of, version), max_size=3)
    return _PLAIN[kind]


def versions_of(*apis: Api) -> list[tuple[Api, int]]:
    """Each API with each of its versions."""
    return [(api, version) for api in apis for version in range(api.versions.first, api.versions.last + 1)]


def messages(api: Api, version: int) -> st.SearchStrategy[tuple[Fields, Fields]]:
    """A request and an answer."""
    return st.tuples(values(api.request, version), values(api.response, version))


def assert_read_as_written(api: Api, version: int, request: Fields, response: Fields) -> None:
    """Both are read as they were written, and to the last byte."""
    writer = Writer()
    api.write_request(writer, request, version)
    reader = Reader(writer.joined())
    assert api.read_request(reader, version) == request
    assert reader.left == 0
    writer = Writer()
    api.write_response(writer, response, version)
    reader = Reader(writer.joined())
    assert api.read_response(reader, version) == response
    assert reader.left == 0
