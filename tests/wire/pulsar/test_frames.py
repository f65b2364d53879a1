"""The format of a frame, and the largest frame that a peer reads."""

from __future__ import annotations

import struct

import pytest

from broker_core.wire.pulsar.frames import (
    FrameError,
    frame,
    frame_limit,
    parse_header,
)


def test_a_frame_is_two_sizes_and_the_command() -> None:
    assert frame(b"abc") == b"\0\0\0\x07\0\0\0\x03abc"


def test_the_limit_of_a_java_peer() -> None:
    assert frame_limit(5 * 1024 * 1024) == 5_253_120


def test_a_header_says_how_large_frame_and_command_are() -> None:
    assert parse_header(b"xx" + struct.pack(">II", 20, 7), 2, 24) == (24, 7)
    with pytest.raises(FrameError, match="24 bytes is over the limit of 23 bytes"):
        parse_header(struct.pack(">II", 20, 7), 0, 23)
