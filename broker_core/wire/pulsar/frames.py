"""Frames: how commands are cut out of a stream of bytes.

``uint32 BE total size || uint32 BE command size || command``, where the total size leaves out its own four bytes. A
frame whose total size is larger carries a payload behind its command (SEND, MESSAGE); of these the command alone is
given. docs/reference/pulsar-behaviour.md#frames
"""

from __future__ import annotations

import struct
from typing import Final

from broker_core.errors import BrokerCoreError

__all__ = [
    "DEFAULT_MAX_MESSAGE_SIZE",
    "HEADER_SIZE",
    "MAX_COMMAND_SIZE",
    "FrameDecoder",
    "FrameError",
    "frame",
    "frame_limit",
    "parse_header",
]

#: Bytes of both sizes in front of a command.
HEADER_SIZE: Final = 8

#: What a peer assumes where CONNECTED does not carry ``max_message_size``, in bytes.
DEFAULT_MAX_MESSAGE_SIZE: Final = 5 * 1024 * 1024

#: No protobuf message may be larger, in bytes.
MAX_COMMAND_SIZE: Final = 2**31 - 1

_ROOM_FOR_METADATA: Final = 10 * 1024
_SIZES: Final = struct.Struct(">II")


class FrameError(BrokerCoreError):
    """Bytes that are no frame, a frame over the limit, or a command that does not parse; the connection must close."""


def frame_limit(max_message_size: int) -> int:
    """The largest frame, in bytes with its four of size, that a Java peer with this ``max_message_size`` reads.

    Go reads four bytes more; C++ and Python have no limit. docs/reference/pulsar-behaviour.md#frame-limits
    """
    return max_message_size + _ROOM_FOR_METADATA


def frame(command: bytes) -> bytes:
    """The whole frame of an encoded command."""
    size = len(command)
    if size > MAX_COMMAND_SIZE:
        raise FrameError(
            f"a command of {size} bytes is over the protocol's limit of {MAX_COMMAND_SIZE} bytes"
        )
    return _SIZES.pack(size + 4, size) + command


def parse_header(data: bytes | bytearray | memoryview, offset: int, max_frame: int) -> tuple[int, int]:
    """The size of the whole frame and of its command, in bytes, from the :data:`HEADER_SIZE` bytes at ``offset``."""
    total, command = _SIZES.unpack_from(data, offset)
    if total + 4 > max_frame:
        raise FrameError(f"a frame of {total + 4} bytes is over the limit of {max_frame} bytes")
    if command + 4 > total:
        raise FrameError(f"a frame of {total + 4} bytes cannot hold a command of {command} bytes")
    return total + 4, command


class FrameDecoder:
    """Cuts the chunks of a connection into commands; holds at most one incomplete frame of ``max_frame`` bytes.

    ``max_frame`` counts the whole frame with its four bytes of size, as :func:`frame_limit` gives it. An error is
    final: what follows it in the stream cannot be told apart, so every later :meth:`feed` raises it again.
    """

    __slots__ = ("_command_size", "_error", "_frame_size", "_incomplete", "_max_frame")

    def __init__(self, max_frame: int) -> None:
        self._max_frame = max_frame
        self._incomplete = bytearray()
        self._frame_size = HEADER_SIZE  # bytes that `_incomplete` waits for; a header while no size is known
        self._command_size = -1  # not known yet
        self._error: FrameError | None = None

    @property
    def buffered(self) -> int:
        """Bytes held of a frame that is not whole yet."""
        return len(self._incomplete)

    def feed(self, data: bytes | bytearray | memoryview) -> list[bytes]:
        """The commands of all frames that this chunk completes, as encoded bytes; :exc:`FrameError` closes."""
        if self._error is not None:
            raise self._error
        try:
            if not self._incomplete:
                # The usual case, a client that waits for its answer: one chunk is one frame.
                size = len(data)
                if size >= HEADER_SIZE:
                    frame_size, command_size = parse_header(data, 0, self._max_frame)
                    if frame_size == size:
                        return [bytes(data[HEADER_SIZE : HEADER_SIZE + command_size])]
            return self._feed(data)
        except FrameError as error:
            self._error = error
            self._incomplete = bytearray()
            raise

    def _feed(self, data: bytes | bytearray | memoryview) -> list[bytes]:
        commands: list[bytes] = []
        position, end = 0, len(data)
        held = self._incomplete
        # First what is missing of the frame begun earlier: its header, then the rest of it. Never more than that is
        # added to what is held, which bounds it.
        while held:
            taken = min(self._frame_size - len(held), end - position)
            held += data[position : position + taken]
            position += taken
            if len(held) < self._frame_size:
                return commands
            if self._command_size < 0:
                self._frame_size, self._command_size = parse_header(held, 0, self._max_frame)
                if len(held) < self._frame_size:
                    continue
            commands.append(bytes(held[HEADER_SIZE : HEADER_SIZE + self._command_size]))
            held.clear()
            self._frame_size, self._command_size = HEADER_SIZE, -1
        while end - position >= HEADER_SIZE:
            frame_size, command_size = parse_header(data, position, self._max_frame)
            if end - position < frame_size:
                self._frame_size, self._command_size = frame_size, command_size
                break
            start = position + HEADER_SIZE
            commands.append(bytes(data[start : start + command_size]))
            position += frame_size
        held += data[position:]
        return commands
