"""Names in Arrow streams and in JSON, and bodies that are none."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from broker_core.client import UnexpectedAnswer
from broker_core.client.http.names_of_body import details_of_arrow, names_of_arrow, names_of_json

NAMES = [f"persistent://t/n/{name}" for name in ("a", "é", "b c", "x" * 300)]


def stream(*columns: Any, name: str = "name") -> bytes:
    sink = pa.BufferOutputStream()
    schema = pa.schema([pa.field(name, columns[0].type)])
    with pa.ipc.new_stream(sink, schema) as out:
        for column in columns:
            out.write_batch(pa.record_batch([column], schema=schema))
    body: bytes = sink.getvalue().to_pybytes()
    return body


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_an_arrow_stream(kind: Any) -> None:
    column = pa.array(NAMES, kind)
    for body in (stream(column), stream(column[:1], column[1:]), stream(column[:0], column)):
        found = names_of_arrow(body)
        assert (found.type, found.to_pylist()) == (pa.large_string(), NAMES)
    assert names_of_arrow(stream(column[:0])).to_pylist() == []


def test_what_is_no_listing_as_an_arrow_stream() -> None:
    good = stream(pa.array(NAMES))
    bad_text = stream(pa.array([b"\xff"], pa.binary()))
    for body in (b"", b"{}", good[: len(good) // 2], stream(pa.array(NAMES), name="other"), bad_text):
        with pytest.raises(UnexpectedAnswer, match="no listing as an Arrow stream"):
            names_of_arrow(body)
    # A short text may stand for many long ones.
    for many in (pa.array(NAMES).dictionary_encode(), pa.array(NAMES, pa.string_view())):
        with pytest.raises(UnexpectedAnswer, match="its names are no texts"):
            names_of_arrow(stream(many))
    with pytest.raises(UnexpectedAnswer, match="null"):
        names_of_arrow(stream(pa.array([None, "a"])))


@pytest.mark.parametrize(
    "names", [[], ["a"], NAMES, ['a"b', "c"], ["a\\b"], ['","'], ["a,b", "c"], [""], ["", ""]]
)
def test_json(names: list[str]) -> None:
    for body in (
        json.dumps(names, separators=(",", ":")).encode(),
        json.dumps(names, separators=(",", ":"), ensure_ascii=False).encode(),
        json.dumps(names, indent=1).encode(),
    ):
        found = names_of_json(body)
        assert (found.type, found.to_pylist()) == (pa.large_string(), names)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b'{"a":"b"}',
        b"[1]",
        b'["a",1,"b"]',
        b'["a"',
        b'["a""b"]',
        b'["a"],["b"]',
        b'["\xff"]',
        b"[" * 9999,
    ],
)
def test_what_is_no_json_array_of_names(body: bytes) -> None:
    with pytest.raises(UnexpectedAnswer, match="no listing"):
        names_of_json(body)


def test_half_a_character_in_json() -> None:
    with pytest.raises(UnexpectedAnswer, match="no Unicode"):
        names_of_json(b'["\\ud800"]')


def test_details_are_of_the_schema_that_was_asked_for() -> None:
    names, numbers = pa.array(NAMES), pa.array(range(len(NAMES)), pa.int32())
    schema = pa.schema([pa.field("name", pa.string()), pa.field("partitions", pa.int32())])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as out:
        out.write_batch(pa.record_batch([names, numbers], schema=schema))
    body = sink.getvalue().to_pybytes()
    assert details_of_arrow(body, schema).to_pydict() == {
        "name": NAMES,
        "partitions": list(range(len(NAMES))),
    }
    for bad, wanted in ((body[: len(body) // 2], schema), (stream(names), schema), (b"{}", schema)):
        with pytest.raises(UnexpectedAnswer):
            details_of_arrow(bad, wanted)
    with pytest.raises(UnexpectedAnswer, match="is null"):
        details_of_arrow(stream(pa.array([None, "a"])), pa.schema([pa.field("name", pa.string())]))


def test_details_come_in_the_order_that_was_asked() -> None:
    sent = pa.table({"name": ["a"], "topic_id": ["x"], "properties": ["y"]})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, sent.schema) as stream:
        stream.write_table(sent)
    asked = pa.schema([sent.schema.field(name) for name in ("name", "properties", "topic_id")])
    assert details_of_arrow(sink.getvalue().to_pybytes(), asked).column_names == asked.names
