"""The buffered frame decoder, with the socket reading directly into the frame."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_core.wire.pulsar.frames import BufferedFrameDecoder, FrameDecoder, FrameError, frame

LIMIT = 1 << 20


def read(buffer: BufferedFrameDecoder, data: bytes, step: int) -> list[bytes | memoryview]:
    """What a transport does: fill the buffer as far as there is data, at most ``step`` bytes at a time."""
    commands: list[bytes | memoryview] = []
    position = 0
    while position < len(data):
        target = buffer.get_buffer()
        assert len(target) > 0
        size = min(len(target), step, len(data) - position)
        target[:size] = data[position : position + size]
        commands += buffer.buffer_updated(size)
        position += size
    return commands


@given(
    st.lists(st.sampled_from([0, 1, 7, 100, 40_000, 65_527, 65_528, 65_529, 70_000, 200_000]), max_size=6),
    st.sampled_from([1000, 65_536, 1 << 20]),
)
def test_small_and_large_frames_in_any_order(sizes: list[int], step: int) -> None:
    sent = [bytes((index,)) * size for index, size in enumerate(sizes)]
    buffer = BufferedFrameDecoder(LIMIT)
    assert read(buffer, b"".join(map(frame, sent)), step) == sent
    assert buffer.buffered == 0


def test_byte_by_byte() -> None:
    sent = [b"", b"a", b"x" * 300]
    assert read(BufferedFrameDecoder(LIMIT), b"".join(map(frame, sent)), 1) == sent


def test_a_large_command_is_not_copied_and_not_shared() -> None:
    buffer = BufferedFrameDecoder(LIMIT)
    first, second = read(buffer, frame(b"a" * 100_000) + frame(b"b" * 100_000), LIMIT)
    assert isinstance(first, memoryview)
    assert isinstance(second, memoryview)
    assert bytes(first) == b"a" * 100_000
    assert bytes(second) == b"b" * 100_000


def test_a_large_frame_is_announced_before_it_has_memory() -> None:
    buffer = BufferedFrameDecoder(1 << 30)
    assert read(buffer, frame(b"a") + (1 << 29).to_bytes(4) + (1 << 28).to_bytes(4) + b"begin", LIMIT) == [
        b"a"
    ]
    assert buffer.large_frame == (1 << 29) + 4
    assert bytes(buffer.beginning) == b"begin"
    assert len(buffer.get_buffer()) == (1 << 29) + 4 - 13
    assert bytes(buffer.beginning) == b"begin"
    small = BufferedFrameDecoder(LIMIT)
    read(small, frame(b"abc")[:10], LIMIT)
    assert (small.large_frame, bytes(small.beginning)) == (0, b"ab")


def test_a_frame_over_the_limit_is_an_error_for_good() -> None:
    buffer = BufferedFrameDecoder(LIMIT)
    with pytest.raises(FrameError, match="over the limit"):
        read(buffer, frame(b"x" * LIMIT), 4096)
    with pytest.raises(FrameError, match="over the limit"):
        buffer.buffer_updated(0)


@given(st.binary(max_size=2000), st.integers(1, 500))
def test_agrees_with_the_decoder_of_chunks(data: bytes, step: int) -> None:
    decoder, buffer = FrameDecoder(500), BufferedFrameDecoder(500)
    expected: list[bytes] = []
    failed = False
    try:
        for start in range(0, len(data), step):
            expected += decoder.feed(data[start : start + step])
    except FrameError:
        failed = True
    try:
        assert read(buffer, data, step) == expected
        assert not failed
    except FrameError:
        assert failed
