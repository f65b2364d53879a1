from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_core.wire.kafka.reader import MalformedMessage, Reader
from broker_core.wire.kafka.writer import unsigned_varint


@pytest.mark.parametrize("length", [b"\x7f\xff\xff\xff", b"\x80\x00\x00\x00", b"\x00\x00\x00\x02"])
def test_a_length_beyond_the_bytes_that_are_left_is_malformed(length: bytes) -> None:
    with pytest.raises(MalformedMessage):
        Reader(length + b"x").elements(compact=False)


@pytest.mark.parametrize("data", [b"\xff" * 4, b"\xff\xff\xff\xff\x7f", b"\x80" * 6, b""])
def test_a_variable_length_integer_ends_within_32_bits(data: bytes) -> None:
    with pytest.raises(MalformedMessage):
        Reader(data).unsigned_varint()


@given(st.integers(0, 2**32 - 1))
def test_a_variable_length_integer_is_read_as_written(value: int) -> None:
    assert Reader(unsigned_varint(value)).unsigned_varint() == value


def test_the_elements_of_all_arrays_are_bounded_together() -> None:
    reader = Reader(b"\x03\x03" + b"x" * 10, most_elements=3)
    assert reader.elements(compact=True) == 2
    with pytest.raises(MalformedMessage, match="too many elements"):
        reader.elements(compact=True)


def test_bytes_that_are_no_text_are_replaced() -> None:
    assert Reader(b"\x00\x02a\xff").plain_string() == "a\ufffd"


def test_a_part_cannot_be_read_beyond_its_end() -> None:
    reader = Reader(b"\x00\x01\x02")
    before = reader.within(1)
    with pytest.raises(MalformedMessage):
        reader.int16()
    reader.leave(before)
    assert (reader.at, reader.left) == (1, 2)


def test_unknown_tags_are_skipped() -> None:
    reader = Reader(b"\x02\x05\x01a\x09\x02bc!")
    reader.skip_tags()
    assert reader.raw(1) == b"!"
