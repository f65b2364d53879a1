"""Frames: the form of commands in a stream of bytes, their largest size, and the decoders that cut them out.

``uint32 BE total size || uint32 BE command size || command``, where the total size leaves out its own four bytes. A
frame whose total size is larger carries a payload after its command (SEND, MESSAGE), which is dropped.
docs/reference/pulsar-behaviour.md#frames

:class:`FrameDecoder` is for requests, which are small. :class:`BufferedFrameDecoder` is for answers that may be large:
the socket reads straight into the memory that is handed on. A listing of 1,000,000 topics is one frame of 65 MB:
:meth:`asyncio.Protocol.data_received` would bring it in hundreds of chunks to be put together.
"""

from __future__ import annotations

import struct
from typing import Final

from broker_core.errors import BrokerCoreError

__all__ = [
    "HEADER_SIZE",
    "MAX_COMMAND_SIZE",
    "BufferedFrameDecoder",
    "FrameDecoder",
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


class FrameDecoder:
    """Decoder of a connection's chunks into commands; holds at most one incomplete frame of ``max_frame`` bytes.

    ``max_frame`` counts the whole frame with its four bytes of size, as :func:`frame_limit` gives it. An error is
    final: frames after it cannot be recognised, so every later :meth:`feed` raises it again.
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
        """Bytes held of an incomplete frame."""
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
        # First the missing part of the frame begun earlier: its header, then the rest of it. Nothing more is added to
        # the held bytes, which bounds them.
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


_CHUNK: Final = 64 * 1024  # bytes; a frame that is larger gets memory of its own


class BufferedFrameDecoder:
    """Decoder for an :class:`asyncio.BufferedProtocol`: hands out the buffer to read into, then complete commands.

    ``max_frame`` bounds a frame with its four bytes of size. Commands of small frames are ``bytes``; the command of a
    large one is a ``memoryview`` of memory that is not shared, so that it can be used without a copy. That memory is
    allocated with the buffer for its next bytes, and the operating system provides its pages only as they are written:
    a peer that announces a large frame and sends nothing costs nothing.
    """

    __slots__ = ("_chunk", "_command_size", "_error", "_filled", "_large", "_large_size", "_max_frame")

    def __init__(self, max_frame: int) -> None:
        self._max_frame = max_frame
        self._chunk = bytearray(_CHUNK)
        self._large: memoryview | None = (
            None  # the frame that is being read if it is large and its memory is there
        )
        self._large_size = 0  # of that frame, in bytes; 0 when there is none
        self._command_size = 0  # of that frame
        self._filled = 0  # bytes in the large frame once it has memory, else in the chunk
        self._error: FrameError | None = None

    @property
    def buffered(self) -> int:
        """Bytes held of an incomplete frame."""
        return self._filled

    @property
    def large_frame(self) -> int:
        """Bytes of the large frame that is being read, else 0; from its header on, before it has memory."""
        return self._large_size

    @property
    def beginning(self) -> memoryview:
        """The first bytes of the command that is being read, as far as they are there."""
        held = memoryview(self._chunk) if self._large is None else self._large
        return held[HEADER_SIZE : max(HEADER_SIZE, self._filled)]

    @property
    def start(self) -> memoryview:
        """The first bytes of the frame that is being read, its header included, as far as they are there."""
        held = memoryview(self._chunk) if self._large is None else self._large
        return held[: min(self._filled, HEADER_SIZE)]

    def get_buffer(self) -> memoryview:
        """The buffer for the next bytes; never empty."""
        if self._large_size and self._large is None:
            import numpy as np  # whose import would cost a quick command more than all of its answer

            # Not a bytearray, which would be written full of zeros first.
            self._large = memoryview(np.empty(self._large_size, np.uint8))  # type: ignore[arg-type]
            self._large[: self._filled] = memoryview(self._chunk)[: self._filled]
        if self._large is not None:
            return self._large[self._filled :]
        return memoryview(self._chunk)[self._filled :]

    def buffer_updated(self, size: int) -> list[bytes | memoryview]:
        """The commands that ``size`` more bytes completed; a :exc:`FrameError` is final, and the connection closes."""
        if self._error is not None:
            raise self._error
        self._filled += size
        try:
            return self._small_frames() if self._large is None else self._large_frame(self._large)
        except FrameError as error:
            self._error = error
            raise

    def _large_frame(self, large: memoryview) -> list[bytes | memoryview]:
        if self._filled < self._large_size:
            return []
        self._large, self._large_size, self._filled = None, 0, 0
        return [large[HEADER_SIZE : HEADER_SIZE + self._command_size]]

    def _small_frames(self) -> list[bytes | memoryview]:
        commands: list[bytes | memoryview] = []
        chunk, position, end = self._chunk, 0, self._filled
        while end - position >= HEADER_SIZE:
            frame_size, command_size = parse_header(chunk, position, self._max_frame)
            if end - position < frame_size:
                if frame_size > _CHUNK:
                    self._large_size, self._command_size = frame_size, command_size
                break
            start = position + HEADER_SIZE
            commands.append(bytes(chunk[start : start + command_size]))
            position += frame_size
        if position:
            chunk[: end - position] = chunk[position:end]
            self._filled = end - position
        return commands
