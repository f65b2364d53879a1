"""Decoding of a stream of bytes into the commands of its frames."""

from __future__ import annotations

from broker_core.wire.pulsar.frames import HEADER_SIZE, FrameError, parse_header

__all__ = ["FrameDecoder"]


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
