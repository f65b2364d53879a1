"""The headers of requests and answers, and whole frames of both.

A frame is a length of four bytes and the message. The client id is a text with a length of two bytes in every version
of the header; header 2 (of flexible versions) has tagged fields after it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from broker_core.wire.kafka.api import Api
from broker_core.wire.kafka.fields import Fields
from broker_core.wire.kafka.reader import Reader
from broker_core.wire.kafka.writer import Buffer, Writer

__all__ = [
    "MOST_ANSWERED",
    "RequestHeader",
    "read_header",
    "read_response",
    "request_frame",
    "response_frame",
]

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
