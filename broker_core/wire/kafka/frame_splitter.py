"""Splitting a stream of bytes into the messages of its frames: a length of four bytes, then so many bytes."""

from __future__ import annotations

from typing import Final

from broker_core.wire.kafka.reader import MalformedMessage

__all__ = ["FrameSplitter"]

_HEADER: Final = 4
#: The least size of a request: its header.
_LEAST: Final = 8
#: The first bytes of a handshake of TLS. Read as a length they are more than 300 MB, which no message has.
_TLS_HANDSHAKE: Final = b"\x16\x03"


class FrameSplitter:
    """Splitter that holds at most one incomplete frame; ``max_size`` bounds the bytes of a message, and may be changed.

    An error is final: frames after it cannot be recognised.
    """

    __slots__ = ("_held", "least", "max_size")

    def __init__(self, max_size: int, *, least: int = _LEAST) -> None:
        self.max_size = max_size
        self.least = least
        self._held = bytearray()

    @property
    def buffered(self) -> int:
        """Bytes held of an incomplete frame."""
        return len(self._held)

    def feed(self, data: bytes) -> list[bytes]:
        """The messages that this chunk completes; :exc:`~.reader.MalformedMessage` closes."""
        held = self._held
        held += data
        at, end = 0, len(held)
        messages: list[bytes] = []
        while end - at >= _HEADER:
            size = int.from_bytes(held[at : at + _HEADER], "big", signed=True)
            if not self.least <= size <= self.max_size:
                tls = held.startswith(_TLS_HANDSHAKE, at)
                held.clear()
                if tls:
                    raise MalformedMessage("a TLS handshake, where TLS is not spoken")
                raise MalformedMessage(
                    f"a frame of {size} bytes; from {self.least} to {self.max_size} are possible"
                )
            if end - at - _HEADER < size:
                break
            messages.append(bytes(held[at + _HEADER : at + _HEADER + size]))
            at += _HEADER + size
        del held[:at]
        return messages
