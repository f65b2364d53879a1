"""Frames: the form of commands in a stream of bytes, and their largest size.

``uint32 BE total size || uint32 BE command size || command``, where the total size leaves out its own four bytes. A
frame whose total size is larger carries a payload after its command (SEND, MESSAGE), which is dropped.
docs/reference/pulsar-behaviour.md#frames
"""

from __future__ import annotations

import struct
from typing import Final

from broker_core.errors import BrokerCoreError

__all__ = [
    "HEADER_SIZE",
    "MAX_COMMAND_SIZE",
    "FrameError",
    "frame",
    "frame_limit",
    "parse_header",
]

#: Bytes of both sizes before a command.
HEADER_SIZE: Final = 8

#: No protobuf message may be larger, in bytes.
MAX_COMMAND_SIZE: Final = 2**31 - 1

_ROOM_FOR_METADATA: Final = 10 * 1024
_SIZES: Final = struct.Struct(">II")


class FrameError(BrokerCoreError):
    """Bytes are not a frame, a frame over the limit, or a command that does not parse; the connection must close."""


def frame_limit(max_message_size: int) -> int:
    """The largest frame, in bytes including its four of size, that a Java peer with a ``max_message_size`` reads.

    Go reads four bytes more; C++ and Python have no limit. docs/reference/pulsar-behaviour.md#frame-limits
    """
    return max_message_size + _ROOM_FOR_METADATA


def frame(command: bytes, rest: int = 0, *, shown: str = "a command") -> bytes:
    """The whole frame of an encoded command; or the beginning of one, if ``rest`` bytes of the command follow.

    Raises :exc:`FrameError` if that would be more than the protocol can carry (2 GiB); ``shown`` names it in the text.
    """
    size = len(command) + rest
    if size > MAX_COMMAND_SIZE:
        raise FrameError(f"{shown} of {size} bytes is over the protocol's limit of {MAX_COMMAND_SIZE} bytes")
    return _SIZES.pack(size + 4, size) + command


def parse_header(data: bytes | bytearray | memoryview, offset: int, max_frame: int) -> tuple[int, int]:
    """The size of the whole frame and of its command, in bytes, from the :data:`HEADER_SIZE` bytes at ``offset``."""
    total, command = _SIZES.unpack_from(data, offset)
    if total + 4 > max_frame:
        raise FrameError(f"a frame of {total + 4} bytes is over the limit of {max_frame} bytes")
    if command + 4 > total:
        raise FrameError(f"a frame of {total + 4} bytes cannot hold a command of {command} bytes")
    return total + 4, command
