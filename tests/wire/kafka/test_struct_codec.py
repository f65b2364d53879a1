from __future__ import annotations

import pytest

from broker_core.wire.kafka.fields import Codec, FieldCodec, struct_codec
from broker_core.wire.kafka.reader import MalformedMessage, Reader
from broker_core.wire.kafka.writer import Writer

SMALL = Codec(Reader.int8, Writer.int8, "b")
LARGE = Codec(Reader.int32, Writer.int32, "i")
TEXT = Codec(Reader.compact_string, Writer.compact_string)
PLAIN = [
    FieldCodec("a", 0, SMALL),
    FieldCodec("b", -1, LARGE),
    FieldCodec("c", "", TEXT),
    FieldCodec("d", 7, SMALL),
]
TAGGED = {3: FieldCodec("t", 0, LARGE)}


def codec() -> Codec:
    return struct_codec(PLAIN, TAGGED, {"gone": []}, flexible=True)


def written(value: dict[str, object]) -> bytes:
    writer = Writer()
    codec().write(writer, value)
    return writer.joined()


def test_neighbours_of_a_fixed_size_are_written_one_behind_the_other() -> None:
    data = written({"a": 1, "b": 2, "c": "x", "t": 5})
    assert data == b"\x01" + b"\x00\x00\x00\x02" + b"\x02x" + b"\x07" + b"\x01\x03\x04\x00\x00\x00\x05"
    assert codec().read(Reader(data)) == {"a": 1, "b": 2, "c": "x", "d": 7, "t": 5, "gone": []}


def test_a_step_over_many_fields_stops_at_the_last_byte() -> None:
    whole = written({"c": "x"})
    for end in range(len(whole)):
        with pytest.raises(MalformedMessage):
            codec().read(Reader(whole[:end]))


def test_a_tagged_field_cannot_be_read_beyond_its_size() -> None:
    data = written({})[:-1] + b"\x01\x03\x02\x00\x00" + b"\x00" * 8
    with pytest.raises(MalformedMessage):
        codec().read(Reader(data))


def test_tags_are_bounded_as_elements_are() -> None:
    tags = b"\x09\x00" * 100
    reader = Reader(written({})[:-1] + b"\x64" + tags, most_elements=99)
    with pytest.raises(MalformedMessage, match="too many"):
        codec().read(reader)
