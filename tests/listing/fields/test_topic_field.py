from __future__ import annotations

import pytest

from broker_core.listing.fields.topic_field import (
    MalformedFields,
    read_varint,
    topic_field,
    varint,
    walk_fields,
)

NAMES = ["a", "b" * 127, "c" * 128, "größe", "d" * 20_000]


def test_varints() -> None:
    numbers = (0, 127, 128, 2**32)
    assert list(map(varint, numbers)) == [b"\0", b"\x7f", b"\x80\x01", b"\x80\x80\x80\x80\x10"]
    for number in numbers:
        encoded = varint(number)
        assert read_varint(memoryview(b"x" + encoded), 1) == (number, 1 + len(encoded))


def test_a_number_of_too_many_bits_is_refused() -> None:
    with pytest.raises(MalformedFields, match="64 bits"):
        read_varint(memoryview(b"\xff" * 11), 0)
    with pytest.raises(IndexError):
        read_varint(memoryview(b"\xff"), 0)


def test_fields_are_walked_up_to_another_tag() -> None:
    fields = b"".join(map(topic_field, NAMES))
    data = memoryview(b"\x08\x07" + fields + b"\x18\x01")
    starts, lengths, end = walk_fields(data, 2, len(data))
    assert [
        str(data[start : start + length], "utf-8") for start, length in zip(starts, lengths, strict=True)
    ] == NAMES
    assert end == 2 + len(fields)
    assert walk_fields(data, 0, len(data)) == ([], [], 0)


def test_a_field_beyond_the_end_is_refused() -> None:
    data = memoryview(topic_field("abc"))
    with pytest.raises(MalformedFields, match="truncated"):
        walk_fields(data[:-1], 0, len(data) - 1)
    with pytest.raises(IndexError):
        walk_fields(data[:1], 0, 1)
