"""Splitting a stream into commands, for any chunks and any bytes."""

from __future__ import annotations

import itertools
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_core.wire.pulsar.frames import FrameDecoder, FrameError, frame

LIMIT = 1000
commands = st.lists(st.binary(max_size=200), max_size=8)


def with_payload(command: bytes, payload: bytes) -> bytes:
    return struct.pack(">II", len(command) + 4 + len(payload), len(command)) + command + payload


def chunked(data: bytes, cuts: list[int]) -> list[bytes]:
    edges = sorted({0, len(data), *(cut for cut in cuts if cut <= len(data))})
    return [data[start:end] for start, end in itertools.pairwise(edges)]


@given(commands, st.lists(st.integers(0, 1700), max_size=30))
def test_any_chunks_give_the_same_commands(sent: list[bytes], cuts: list[int]) -> None:
    decoder = FrameDecoder(LIMIT)
    received: list[bytes] = []
    for chunk in chunked(b"".join(map(frame, sent)), cuts):
        received += decoder.feed(chunk)
        assert decoder.buffered <= LIMIT
    assert received == sent
    assert decoder.buffered == 0


@given(commands)
def test_byte_by_byte(sent: list[bytes]) -> None:
    decoder = FrameDecoder(LIMIT)
    stream = b"".join(with_payload(command, b"payload") for command in sent)
    received = [command for byte in stream for command in decoder.feed(bytes((byte,)))]
    assert received == sent


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_kind_of_bytes(kind: type) -> None:
    decoder = FrameDecoder(LIMIT)
    assert decoder.feed(kind(frame(b"a"))) == [b"a"]
    assert decoder.feed(kind(frame(b"b") + frame(b"cd")[:9])) == [b"b"]
    assert decoder.feed(kind(frame(b"cd")[9:])) == [b"cd"]
    assert all(type(command) is bytes for command in FrameDecoder(LIMIT).feed(kind(frame(b"a") * 2)))


def test_a_payload_is_left_out() -> None:
    decoder = FrameDecoder(LIMIT)
    assert decoder.feed(with_payload(b"send", b"x" * 100) + frame(b"next")) == [b"send", b"next"]


def test_an_empty_command_is_a_frame() -> None:
    assert FrameDecoder(LIMIT).feed(frame(b"")) == [b""]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (struct.pack(">II", LIMIT - 3, LIMIT - 7), "1001 bytes is over the limit of 1000 bytes"),
        (b"GET / HTTP/1.1\r\n", "1195725860 bytes is over the limit of 1000 bytes"),
        (struct.pack(">II", 3, 0), "cannot hold a command"),
        (struct.pack(">II", 0, 0), "cannot hold a command"),
        (struct.pack(">II", 10, 7), "a frame of 14 bytes cannot hold a command of 7 bytes"),
        (struct.pack(">II", 10, 2**32 - 1), "cannot hold a command"),
    ],
)
@pytest.mark.parametrize("step", [1, 5, 100])
def test_impossible_sizes_are_an_error_for_good(data: bytes, reason: str, step: int) -> None:
    decoder = FrameDecoder(LIMIT)
    assert decoder.feed(frame(b"fine")) == [b"fine"]
    with pytest.raises(FrameError, match=reason):
        for start in range(0, len(data), step):
            decoder.feed(data[start : start + step])
    assert decoder.buffered == 0
    with pytest.raises(FrameError, match=reason):
        decoder.feed(frame(b"fine"))


def test_the_limit_counts_the_whole_frame() -> None:
    largest = frame(b"x" * (LIMIT - 8))
    assert FrameDecoder(len(largest)).feed(largest) == [b"x" * (LIMIT - 8)]
    with pytest.raises(FrameError):
        FrameDecoder(len(largest) - 1).feed(largest)


@given(st.lists(st.binary(max_size=300), max_size=10))
def test_random_bytes_raise_nothing_else_and_stay_bounded(chunks: list[bytes]) -> None:
    decoder = FrameDecoder(LIMIT)
    try:
        for chunk in chunks:
            decoder.feed(chunk)
            assert decoder.buffered <= LIMIT
    except FrameError:
        pass
