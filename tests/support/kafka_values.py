"""Random values of Kafka's messages, drawn from the declared fields of an API and a version, and their codecs."""

from __future__ import annotations

import os
from functools import cache
from typing import Any, Final

from hypothesis import strategies as st

from broker_core.wire.kafka import LIST_TOPICS, Api, ErrorCode, Fields, Reader
from broker_core.wire.kafka.fields import (
    BOOLEAN,
    BYTES,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    LIMIT,
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
from tests.support.kafka_oracles import OWN_TAGS, Direction, libraries_of, read_by, written_by

__all__ = ["EXAMPLES", "assert_read_as_written", "messages", "values", "versions_of", "written"]

#: Random values of each API and version; many in `make interop`.
EXAMPLES: Final = int(os.environ.get("KAFKA_EXAMPLES", "3"))
_PLAIN: Final[dict[Kind, st.SearchStrategy[Any]]] = {
    BOOLEAN: st.booleans(),
    BYTES: st.binary(max_size=20),
    FLOAT64: st.floats(allow_nan=False),
    INT8: st.integers(-(2**7), 2**7 - 1),
    INT16: st.integers(-(2**15), 2**15 - 1),
    INT32: st.integers(-(2**31), 2**31 - 1),
    LIMIT: st.integers(-(2**31), 2**31 - 1),
    INT64: st.integers(-(2**63), 2**63 - 1),
    # Long ones too: the length of a compact text of 127 bytes has two bytes.
    STRING: st.text(st.characters(codec="utf-8"), max_size=8) | st.sampled_from(["é" * 63, "x" * 127]),
    UINT16: st.integers(0, 2**16 - 1),
    UUID: st.uuids(),
}
#: Values that kio has types of its own for.
_NAMED: Final[dict[str, st.SearchStrategy[Any]]] = {
    "error_code": st.sampled_from(sorted(map(int, ErrorCode))),
    "log_append_time_ms": st.integers(-1, 2**40),
    "retention_time_ms": st.integers(-1, 2**40),
    "session_lifetime_ms": st.integers(0, 2**40),
    "transaction_start_time_ms": st.integers(0, 2**40),
}


def values(message: Struct, version: int) -> st.SearchStrategy[Fields]:
    """Whole values of one version; fields that the version lacks have their defaults."""
    return st.fixed_dictionaries(
        {
            each.name: _value(each, version)
            if version in Versions.parse(each.versions) and (each.tag or 0) < OWN_TAGS
            else st.just(each.start)
            for each in message.fields
        }
    )


def _value(each: Field, version: int) -> st.SearchStrategy[Any]:
    value = _NAMED[each.name] if each.name in _NAMED else _of_kind(each.kind, version)
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


@cache
def messages(api: Api, version: int) -> st.SearchStrategy[tuple[Fields, Fields]]:
    """A request and an answer."""
    return st.tuples(values(api.request, version), values(api.response, version))


def written(api: Api, direction: Direction, version: int, value: Fields) -> bytes:
    """A message without a header."""
    writer = Writer()
    getattr(api, f"write_{direction}")(writer, value, version)
    return writer.joined()


def assert_read_as_written(api: Api, version: int, request: Fields, response: Fields) -> None:
    """Both are read as they were written, and to the last byte; two other codecs write and read the same bytes."""
    values: tuple[tuple[Direction, Fields], ...] = (("request", request), ("response", response))
    for direction, value in values:
        data = written(api, direction, version, value)
        reader = Reader(data)
        assert getattr(api, f"read_{direction}")(reader, version) == value
        assert reader.left == 0
        if api is LIST_TOPICS:
            continue  # nobody else has it
        for library in libraries_of(api):
            assert written_by(library, api, direction, version, value) == data
            assert read_by(library, api, direction, version, data) == value
