"""Frames of an answer that may be large: read by the socket straight into the memory that they are handed on in.

The same cutting as :class:`~broker_core.wire.frames.FrameDecoder`, for an :class:`asyncio.BufferedProtocol`: a
listing of 1,000,000 topics is one frame of 65 MB, which :meth:`asyncio.Protocol.data_received` would bring in
hundreds of chunks to be put together.
"""

from __future__ import annotations

from typing import Final

from broker_core.wire.frames import HEADER_SIZE, FrameError, parse_header

__all__ = ["FrameBuffer"]

_CHUNK: Final = 64 * 1024  # bytes; a frame that is larger gets memory of its own


class FrameBuffer:
    """Hands out the buffer to read into, then the commands that are whole.

    ``max_frame`` bounds a frame with its four bytes of size. Commands of small frames come as ``bytes``; that of a
    large one is a ``memoryview`` of memory that nobody else holds, so that it can be used without a copy. That memory
    is asked for at once, but the operating system gives its pages only as they are written: a peer that announces a
    large frame and sends nothing costs nothing.
    """

    __slots__ = ("_chunk", "_command_size", "_error", "_filled", "_large", "_max_frame")

    def __init__(self, max_frame: int) -> None:
        self._max_frame = max_frame
        self._chunk = bytearray(_CHUNK)
        self._large: bytearray | None = None
        self._command_size = 0  # of the large frame
        self._filled = 0  # bytes in the large frame if there is one, else in the chunk
        self._error: FrameError | None = None

    @property
    def buffered(self) -> int:
        """Bytes held of a frame that is not whole yet."""
        return self._filled

    def get_buffer(self) -> memoryview:
        """Where the next bytes go; never empty."""
        if self._large is not None:
            return memoryview(self._large)[self._filled :]
        return memoryview(self._chunk)[self._filled :]

    def buffer_updated(self, size: int) -> list[bytes | memoryview]:
        """The commands that ``size`` more bytes completed; an :exc:`FrameError` is final, and the connection closes."""
        if self._error is not None:
            raise self._error
        self._filled += size
        try:
            return self._large_frame() if self._large is not None else self._small_frames()
        except FrameError as error:
            self._error = error
            raise

    def _large_frame(self) -> list[bytes | memoryview]:
        assert self._large is not None
        if self._filled < len(self._large):
            return []
        command = memoryview(self._large)[HEADER_SIZE : HEADER_SIZE + self._command_size]
        self._large, self._filled = None, 0
        return [command]

    def _small_frames(self) -> list[bytes | memoryview]:
        commands: list[bytes | memoryview] = []
        chunk, position, end = self._chunk, 0, self._filled
        while end - position >= HEADER_SIZE:
            frame_size, command_size = parse_header(chunk, position, self._max_frame)
            if end - position < frame_size:
                if frame_size > _CHUNK:
                    self._large = bytearray(frame_size)
                    self._large[: end - position] = chunk[position:end]
                    self._command_size, self._filled = command_size, end - position
                    return commands
                break
            start = position + HEADER_SIZE
            commands.append(bytes(chunk[start : start + command_size]))
            position += frame_size
        if position:
            chunk[: end - position] = chunk[position:end]
            self._filled = end - position
        return commands
