"""Frames of Kafka's protocol: the largest request, messages with their headers, and the splitter of a stream.

A frame is a length of four bytes and the message. The client id is a text with a length of two bytes in every version
of the header; header 2 (of flexible versions) has tagged fields after it. A stream of bytes is split into messages by
their lengths.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from broker_core.wire.kafka.api import Api
from broker_core.wire.kafka.fields import Fields
from broker_core.wire.kafka.reader import MalformedMessage, Reader
from broker_core.wire.kafka.writer import Buffer, Writer

__all__ = [
    "MAX_REQUEST",
    "MAX_REQUEST_BEFORE_LOGIN",
    "MOST_ANSWERED",
    "FrameSplitter",
    "RequestHeader",
    "read_header",
    "read_response",
    "request_frame",
    "response_frame",
]

#: Bytes of a request, and of one before the client is authenticated (Kafka's sasl.server.max.receive.size).
MAX_REQUEST: Final = 16 * 1024 * 1024
MAX_REQUEST_BEFORE_LOGIN: Final = 512 * 1024
_LENGTH: Final = struct.Struct(">I").pack
#: Elements of the arrays of one answer: as many as two million topics with a partition each have.
MOST_ANSWERED: Final = 8_000_000
#: Bytes of a frame: its length has a sign.
_LARGEST: Final = 2**31 - 1
_FIRST: Final = struct.Struct(">hhi").pack


class RequestHeader(NamedTuple):
    """The header of a request; ``client_id`` is empty if it is null."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str


def read_header(reader: Reader) -> RequestHeader:
    """The header without the tagged fields, which the caller skips if the API's version is flexible.

    Raises :exc:`~.reader.MalformedMessage`.
    """
    key, version, correlation_id = reader.int16(), reader.int16(), reader.int32()
    return RequestHeader(key, version, correlation_id, reader.plain_string() or "")


def request_frame(
    api: Api, version: int, correlation_id: int, client_id: str | None, value: Mapping[str, Any]
) -> bytes:
    """A whole request, for clients."""
    writer = Writer()
    writer.raw(_FIRST(api.key, version, correlation_id))
    writer.plain_string(client_id)
    if api.is_flexible(version):
        writer.unsigned_varint(0)
    api.write_request(writer, value, version)
    return _LENGTH(writer.size) + writer.joined()


def response_frame(api: Api, version: int, correlation_id: int, value: Mapping[str, Any]) -> list[Buffer]:
    """A whole answer as pieces, the first of which begins with the length.

    Raises :exc:`OverflowError` for a size that no frame can have.
    """
    writer = Writer()
    writer.int32(correlation_id)
    if api.is_flexible(version) and not api.plain_response_header:
        writer.unsigned_varint(0)
    api.write_response(writer, value, version)
    if writer.size > _LARGEST:
        raise OverflowError(f"an answer of {writer.size} bytes is no frame")
    return [_LENGTH(writer.size), *writer.pieces()]


def read_response(
    api: Api, version: int, message: bytes, read: Callable[[Reader], Fields] | None = None
) -> tuple[int, Fields]:
    """The correlation id and the value of an answer without its length, for clients. ``read`` reads the value.

    Raises :exc:`~.reader.MalformedMessage`.
    """
    reader = Reader(message, most_elements=MOST_ANSWERED)
    correlation_id = reader.int32()
    if api.is_flexible(version) and not api.plain_response_header:
        reader.skip_tags()
    return correlation_id, read(reader) if read is not None else api.read_response(reader, version)


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
