"""Kafka messages damaged in the ways that break decoders, and what must hold for every one that is read."""

from __future__ import annotations

import random
from collections.abc import Iterator

from broker_core.wire.kafka import Api, MalformedMessage, Reader
from tests.support.kafka_oracles import Direction
from tests.support.kafka_values import written

__all__ = ["damaged", "read_or_refused"]

#: Lengths and counts: the largest, negative ones, null, and variable-length ones that are too long or too large.
_LENGTHS = [
    b"\x7f\xff\xff\xff",
    b"\x80\x00\x00\x00",
    b"\xff\xff\xff\xff",
    b"\xff\xff\xff\xfe",
    b"\x7f\xff",
    b"\xff\xfe",
    b"\x00",
    b"\xff\xff\xff\xff\x0f",
    b"\xff\xff\xff\xff\x7f",
    b"\x80\x80\x80\x80\x80\x01",
]


def damaged(data: bytes, chance: random.Random, count: int) -> Iterator[bytes]:
    """So many damaged copies: cut, with other lengths, with other bytes, and longer."""
    for _ in range(count):
        at = chance.randrange(len(data) + 1)
        match chance.randrange(5):
            case 0:
                yield data[:at]
            case 1:
                length = chance.choice(_LENGTHS)
                yield data[:at] + length + data[at + len(length) :]
            case 2:
                yield data[:at] + chance.choice(_LENGTHS) + data[at:]
            case 3:
                yield data[:at] + bytes([chance.randrange(256)]) + data[at + 1 :]
            case _:
                yield data[:at] + data[at:] * chance.randrange(2, 5)


def read_or_refused(api: Api, direction: Direction, version: int, data: bytes) -> None:
    """A message is malformed, or it is read to a value that is written and read again to the same."""
    read = getattr(api, f"read_{direction}")
    try:
        value = read(Reader(data), version)
    except MalformedMessage:
        return
    again = written(api, direction, version, value)  # compared, since a float may be no number
    assert written(api, direction, version, read(Reader(again), version)) == again
