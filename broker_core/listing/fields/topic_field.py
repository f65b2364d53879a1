"""The protobuf field of one topic's name, ``repeated string topics = 2``, without Arrow: clients start quickly.

A field is the tag ``0x12``, the length as a varint of the fewest bytes, and the name. For columns of fields see
:mod:`~broker_core.listing.fields.fields_codec`, for the fields of a large answer
:mod:`~broker_core.listing.fields.search_fields`.
"""

from __future__ import annotations

from typing import Final

__all__ = ["TAG", "MalformedFields", "read_varint", "topic_field", "varint", "walk_fields"]

TAG: Final = 0x12  # field 2, length-delimited
_SMALL: Final = tuple(bytes((value,)) for value in range(0x80))


class MalformedFields(ValueError):
    """Bytes from outside are not fields; the message continues the name of the bytes."""


def varint(value: int) -> bytes:
    """A number as protobuf writes it: seven bits a byte, the lowest first."""
    if value < 0x80:
        return _SMALL[value]
    if value < 0x4000:
        return bytes((value & 0x7F | 0x80, value >> 7))
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def topic_field(name: str) -> bytes:
    """The field of one name."""
    encoded = name.encode()
    return b"\x12" + varint(len(encoded)) + encoded


def read_varint(data: memoryview, position: int) -> tuple[int, int]:
    """The number at ``position``, and its end; :exc:`MalformedFields`, or :exc:`IndexError` at the end of the data."""
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, position
        shift += 7
        if shift > 63:
            raise MalformedFields("has a number of more than 64 bits")


def walk_fields(data: memoryview, position: int, end: int) -> tuple[list[int], list[int], int]:
    """The starts and lengths of the names in the fields from ``position`` on, and the end of the run of fields.

    The bytes are untrusted, and ``end`` is within them. Raises :exc:`MalformedFields` for a field that reaches beyond
    ``end``, and :exc:`IndexError` for a length that does.
    """
    starts: list[int] = []
    lengths: list[int] = []
    while position < end and data[position] == TAG:
        length = data[position + 1]
        start = position + 2
        if length >= 0x80:
            length, start = read_varint(data, position + 1)
        position = start + length
        starts.append(start)
        lengths.append(length)
    if position > end:
        raise MalformedFields("is truncated")
    return starts, lengths, position
