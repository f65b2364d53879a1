"""Frames of answers that may be large: the socket reads straight into the memory that is handed on.

It decodes like :class:`~broker_core.wire.pulsar.frame_decoder.FrameDecoder`, for an :class:`asyncio.BufferedProtocol`.
A listing of 1,000,000 topics is one frame of 65 MB: :meth:`asyncio.Protocol.data_received` would bring it in hundreds
of chunks to be put together.
"""

from __future__ import annotations

from typing import Final

from broker_core.wire.pulsar.frames import HEADER_SIZE, FrameError, parse_header

__all__ = ["BufferedFrameDecoder"]

_CHUNK: Final = 64 * 1024  # bytes; a frame that is larger gets memory of its own


class BufferedFrameDecoder:
    """Decoder that hands out the buffer to read into, then the complete commands.

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
