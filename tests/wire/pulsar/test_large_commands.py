"""Large commands decode to the same, in time linear in their size."""

from __future__ import annotations

import pytest

from broker_core.wire.pulsar import commands, large_commands
from broker_core.wire.pulsar.frames import HEADER_SIZE, FrameError
from broker_core.wire.pulsar.large_commands import LARGE, TooManyElements, decode_large
from broker_core.wire.pulsar.messages.pulsar_api_pb2 import BaseCommand


def command(frame: bytes) -> bytes:
    return frame[HEADER_SIZE:]


def varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def with_body(number: int, body: bytes) -> bytes:
    """An encoded command of this type with this body."""
    return b"\x08" + varint(number) + part(number, body)


def part(number: int, body: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(body)) + body


LISTING = b"\x08\x07\x12\x03a/b"  # request id 7, namespace a/b
LOOKUP = b"\x0a\x01t\x10\x07"  # topic t, request id 7


@pytest.mark.parametrize(
    "frame",
    [
        commands.get_topics(
            7, "a/b", 2, topics_pattern="x" * LARGE, topics_hash="h", properties={"k": "v", "l": "w"}
        ),
        commands.get_topics(7, "a/b"),
        commands.lookup(7, "t" * LARGE),
        commands.partitioned_metadata(7, "t" * LARGE, auto_create=False),
        commands.get_schema(7, "t" * LARGE, b"x"),
        commands.connect("v", auth_data=b"a" * LARGE),
        commands.ping(),
    ],
)
def test_a_command_decodes_to_the_same(frame: bytes) -> None:
    assert decode_large(command(frame), 1000) == commands.decode(command(frame))


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\x08\x20",
        b"\xff" * 100_000,
        with_body(32, b"\x12\x03a/b"),
        with_body(32, b"\x08\x07\x12\x01\xff"),
        with_body(32, b"\xff" * 100_000),
        with_body(23, b"\x10\x07"),
    ],
)
def test_what_does_not_decode_is_an_error_here_too(raw: bytes) -> None:
    with pytest.raises(FrameError):
        commands.decode(raw)
    with pytest.raises(FrameError):
        decode_large(raw, 1000)


@pytest.mark.parametrize(
    ("number", "body", "pair"),
    [(32, LISTING, b"\x32\x04\x0a\0\x12\0"), (23, LOOKUP, b"\x42\x04\x0a\0\x12\0")],
)
def test_too_many_properties_are_counted_and_not_made(number: int, body: bytes, pair: bytes) -> None:
    assert decode_large(with_body(number, body + pair * 1000), 1000).type == number
    with pytest.raises(TooManyElements, match=r"1001 elements in one .* at most 1000") as raised:
        decode_large(with_body(number, pair * 1001 + body), 1000)
    assert raised.value.command.type == number
    assert commands.request_id_of(raised.value.command) == 7


def test_a_bomb_without_a_request_id() -> None:
    with pytest.raises(TooManyElements) as raised:
        decode_large(with_body(32, b"\x32\x04\x0a\0\x12\0" * 1001), 1000)
    assert commands.request_id_of(raised.value.command) is None


def test_of_what_no_lookup_service_reads_there_is_the_request_id() -> None:
    answer = decode_large(with_body(33, b"\x08\x07" + b"\x12\0" * 100_000), 1000)
    assert answer.type == BaseCommand.GET_TOPICS_OF_NAMESPACE_RESPONSE
    assert commands.request_id_of(answer) == 7
    assert not answer.getTopicsOfNamespaceResponse.topics


def test_fields_of_other_commands_are_left_out() -> None:
    raw = with_body(32, LISTING) + part(33, b"\x08\x07" + b"\x12\0" * 100_000)
    assert decode_large(raw, 1000) == commands.decode(with_body(32, LISTING))


def test_a_type_that_nobody_knows() -> None:
    raw = b"\x08\x63" + part(100, b"x" * LARGE)
    assert decode_large(raw, 1000).type == commands.decode(raw).type


def test_a_bomb_is_never_decoded_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: list[int] = []

    def decode(raw: bytes) -> BaseCommand:
        decoded.append(len(raw))
        return commands.decode(raw)

    monkeypatch.setattr(large_commands, "decode", decode)
    fits = with_body(32, LISTING + b"\x32\x04\x0a\0\x12\0" * 1000)
    decode_large(fits, 1000)
    with pytest.raises(TooManyElements, match="500000 elements"):
        decode_large(with_body(32, LISTING + b"\x32\x04\x0a\0\x12\0" * 500_000), 1000)
    assert decoded == [len(fits)]
