"""The answer to a listing, around topics that are encoded already.

A listing holds each name as the bytes of its protobuf field (:mod:`broker_core.listing.fields.topic_field`). An answer
is a head, a run of those bytes and a tail: nothing is copied, and nothing is done per topic. Its exact size is known
before it is sent.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from broker_core.listing import varint
from broker_core.wire.pulsar.frames import frame

__all__ = ["WARNING", "get_topics_response_head"]

#: The number of a field with a warning about the request, for the clients of this project; Pulsar does not have it.
WARNING: Final = 1032

# Keys of protobuf fields: number << 3 | wire type.
_TYPE: Final = b"\x08\x21"  # BaseCommand.type = GET_TOPICS_OF_NAMESPACE_RESPONSE
_BODY: Final = b"\x8a\x02"  # BaseCommand.getTopicsOfNamespaceResponse, a message of the length that follows
_REQUEST_ID: Final = b"\x08"
# filtered (3) before the hash (4), changed (5) after it.
_FILTERED: Final = (b"\x18\x00", b"\x18\x01")
_HASH: Final = b"\x22"
_CHANGED: Final = (b"\x28\x00", b"\x28\x01")
_WARNING_KEY: Final = varint(WARNING << 3 | 2)


def get_topics_response_head(
    request_id: int,
    fields_size: int,
    *,
    topics_hash: str | None,
    filtered: bool,
    changed: bool = True,
    warnings: Iterable[str] = (),
) -> tuple[bytes, bytes]:
    """Head and tail: head, ``fields_size`` bytes of encoded topics and tail make one whole frame.

    ``warnings`` are for a client that reads :data:`WARNING`.

    Raises :exc:`FrameError` if that would be more than the protocol can carry (2 GiB).
    """
    tail = _tail(topics_hash, filtered, changed)
    for text in warnings:
        encoded = text.encode("utf-8", "replace")
        tail += _WARNING_KEY + varint(len(encoded)) + encoded
    request = _REQUEST_ID + varint(request_id)
    body_size = len(request) + fields_size + len(tail)
    start = _TYPE + _BODY + varint(body_size) + request
    return frame(start, fields_size + len(tail), shown="an answer"), tail


@lru_cache(maxsize=256)  # the listings that are requested repeatedly
def _tail(topics_hash: str | None, filtered: bool, changed: bool) -> bytes:
    if topics_hash is None:
        return _FILTERED[filtered] + _CHANGED[changed]
    encoded = topics_hash.encode()
    return _FILTERED[filtered] + _HASH + varint(len(encoded)) + encoded + _CHANGED[changed]
