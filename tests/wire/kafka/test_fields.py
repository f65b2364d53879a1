from __future__ import annotations

import pytest

from broker_core.wire.kafka.fields import INT8, INT16, INT32, STRING, Array, Field, Struct, Versions
from broker_core.wire.kafka.reader import MalformedMessage, Reader
from broker_core.wire.kafka.writer import Encoded, Writer

MESSAGE = Struct(
    Field("name", STRING, nullable="2+"),
    Field("numbers", Array(INT16), "1+"),
    Field("extra", INT32, "1+", default=-1, tag=0),
    Field("cursor", Struct(Field("at", INT8)), "2+", nullable="2+", default=None),
)


def written(value: dict[str, object], version: int, *, flexible: bool) -> bytes:
    writer = Writer()
    MESSAGE.write(writer, value, version, flexible=flexible)
    return writer.joined()


def test_versions_are_written_as_kafka_writes_them() -> None:
    assert 2**15 - 1 in Versions.parse("3+")
    assert Versions.parse("1-4") == (1, 4)
    assert Versions.parse("2") == (2, 2)
    assert 0 not in Versions.parse("none")


def test_a_version_has_the_fields_of_that_version() -> None:
    assert written({"name": "a", "numbers": [5]}, 0, flexible=False) == b"\x00\x01a"
    assert written({"name": "a", "numbers": [5]}, 1, flexible=True) == b"\x02a\x02\x00\x05\x00"


def test_what_is_read_has_every_field() -> None:
    read = MESSAGE.read(Reader(b"\x00\x01a"), 0, flexible=False)
    assert read == {"name": "a", "numbers": [], "extra": -1, "cursor": None}


def test_a_tagged_field_is_there_where_it_is_not_the_default() -> None:
    data = written({"name": None, "extra": 7, "cursor": {"at": 1}}, 2, flexible=True)
    assert data == b"\x00\x01\x01\x01\x00\x01\x00\x04\x00\x00\x00\x07"
    assert MESSAGE.read(Reader(data), 2, flexible=True)["extra"] == 7


def test_unknown_tags_are_skipped() -> None:
    read = MESSAGE.read(Reader(b"\x02a\x01\x01\x2a\x01?"), 1, flexible=True)
    assert read["name"] == "a"


def test_null_is_refused_where_there_must_be_a_value() -> None:
    with pytest.raises(MalformedMessage, match="null"):
        MESSAGE.read(Reader(b"\x00\x01\x00"), 1, flexible=True)
    with pytest.raises(ValueError, match="null"):
        written({"name": None}, 1, flexible=True)


def test_a_name_that_is_no_field_is_an_error() -> None:
    with pytest.raises(KeyError, match="title"):
        written({"title": "a"}, 0, flexible=False)


def test_elements_may_be_encoded_already() -> None:
    given = {"name": "a", "numbers": Encoded(2, [b"\x00\x01", b"\x00\x02"])}
    assert written(given, 1, flexible=True) == b"\x02a\x03\x00\x01\x00\x02\x00"


def test_what_is_read_shares_nothing_with_the_defaults() -> None:
    first = MESSAGE.read(Reader(b"\x00\x01a"), 0, flexible=False)
    first["numbers"].append(1)
    assert MESSAGE.read(Reader(b"\x00\x01a"), 0, flexible=False)["numbers"] == []


def test_an_array_of_numbers_is_read_at_any_length() -> None:
    for count in (0, 7, 8, 1000):
        numbers = list(range(count))
        data = written({"name": "a", "numbers": numbers}, 1, flexible=False)
        assert MESSAGE.read(Reader(data), 1, flexible=False)["numbers"] == numbers
