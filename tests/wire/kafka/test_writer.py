from __future__ import annotations

from broker_core.wire.kafka.writer import Writer


def test_large_parts_are_not_copied() -> None:
    large = bytes(20_000)
    writer = Writer()
    writer.int16(1)
    writer.raw(large)
    writer.boolean(True)
    pieces = writer.pieces()
    assert pieces[1] is large
    assert writer.size == 20_003
    assert writer.joined() == b"\x00\x01" + large + b"\x01"


def test_null_has_a_length_of_its_own() -> None:
    writer = Writer()
    writer.compact_string(None)
    writer.plain_string(None)
    writer.plain_bytes(None)
    assert writer.joined() == b"\x00\xff\xff\xff\xff\xff\xff"
