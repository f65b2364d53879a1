"""The messages of topic list watchers (PIP-145), around topics that are encoded already.

A listing holds each name as a field with the tag of GET_TOPICS' answer, which ``new_topics`` has too; the topics of
SUCCESS and deleted topics have the tag :data:`OTHER_TAG`
(:func:`~broker_core.listing.selections.selection_search.tagged_fields`).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from broker_core.listing import varint
from broker_core.wire.pulsar.frames import frame

__all__ = ["OTHER_TAG", "watch_success_head", "watch_unchanged", "watch_update", "watch_update_body"]

#: Field 3, length-delimited: ``topic`` of SUCCESS, ``deleted_topics`` of UPDATE.
OTHER_TAG: Final = 0x1A
# Keys of protobuf fields: number << 3 | wire type.
_SUCCESS: Final = b"\x08\x41\x8a\x04"  # BaseCommand.type and the key of watchTopicListSuccess
_UPDATE: Final = b"\x08\x42\x92\x04"  # of watchTopicUpdate
_FIRST: Final = b"\x08"
_SECOND: Final = b"\x10"
_HASH: Final = b"\x22"


def watch_success_head(
    request_id: int, watcher_id: int, fields_size: int, topics_hash: str
) -> tuple[bytes, bytes]:
    """Head and tail: head, ``fields_size`` bytes of topics and tail make one whole frame.

    Raises :exc:`FrameError` if that would be more than the protocol can carry (2 GiB).
    """
    ids = _FIRST + varint(request_id) + _SECOND + varint(watcher_id)
    tail = _hash(topics_hash)
    return _head(_SUCCESS, ids, fields_size + len(tail)), tail


def watch_unchanged(request_id: int, watcher_id: int, topics_hash: str) -> bytes:
    """The frame of a SUCCESS without topics, for a client that has all of the hash."""
    body = _FIRST + varint(request_id) + _rest(watcher_id, topics_hash)
    return frame(_SUCCESS + varint(len(body)) + body)


def watch_update_body(added: bytes, removed: bytes, topics_hash: str) -> bytes:
    """An UPDATE without the watcher's id, for :func:`watch_update`; the hash is of the topics after it."""
    return b"".join((added, removed, _hash(topics_hash)))


def watch_update(watcher_id: int, body: bytes) -> bytes:
    """The frame of an UPDATE for one watcher."""
    return _head(_UPDATE, _FIRST + varint(watcher_id), len(body)) + body


@lru_cache(256)  # as the hash
def _rest(watcher_id: int, topics_hash: str) -> bytes:
    return _SECOND + varint(watcher_id) + _hash(topics_hash)


@lru_cache(256)  # of a question, for each of its watchers
def _hash(topics_hash: str) -> bytes:
    encoded = topics_hash.encode()
    return _HASH + varint(len(encoded)) + encoded


def _head(start: bytes, ids: bytes, size: int) -> bytes:
    return frame(start + varint(len(ids) + size) + ids, size)
