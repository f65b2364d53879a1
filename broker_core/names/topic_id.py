"""Topic ids of KIP-516: random UUIDs of version 4 whose base64 never begins with ``-``.

Kafka redraws an id that would begin with ``-`` so that command lines can take it as an argument, and so do we; foreign
ids that begin so are still accepted. Kafka reserves the ids 0 and 1: no topic has one of them.
"""

from __future__ import annotations

import base64
import os
import re
import uuid
from typing import Final

import numpy as np
from numpy.typing import NDArray

from broker_core.errors import InvalidName

__all__ = [
    "RESERVED_IDS",
    "new_topic_id",
    "new_topic_ids",
    "parse_topic_id",
    "topic_id_text",
    "topic_ids_of_a_request",
]

#: ``ZERO_UUID``, which stands for no topic, and ``METADATA_TOPIC_ID`` of Kafka.
RESERVED_IDS: Final = frozenset({uuid.UUID(int=0), uuid.UUID(int=1)})

_ID_BYTES = 16
_BASE64 = re.compile(r"[A-Za-z0-9_+/-]{22}(?:==)?")


def new_topic_ids(count: int) -> bytes:
    """``count`` fresh ids of 16 bytes each, one after the other, in ascending order.

    Sorted ids fill an index page by page, like the sorted names that get them.
    """
    return _in_order(_random_ids(count))


def _random_ids(count: int) -> NDArray[np.uint8]:
    """Random ids, each a row of 16 bytes."""
    ids = np.frombuffer(os.urandom(_ID_BYTES * count), np.uint8).reshape(count, _ID_BYTES).copy()
    # Base64 begins with "-" where the first six bits are 62: the first byte is 0xF8..0xFB.
    while (dashed := (ids[:, 0] & 0xFC) == 0xF8).any():
        ids[dashed, 0] = np.frombuffer(os.urandom(int(dashed.sum())), np.uint8)
    ids[:, 6] = ids[:, 6] & 0x0F | 0x40  # version 4
    ids[:, 8] = ids[:, 8] & 0x3F | 0x80  # variant of RFC 9562
    return ids


def _in_order(ids: NDArray[np.uint8]) -> bytes:
    first_half = ids.view(">u8")[:, 0]  # two ids that are equal in it may be in either order
    return ids[np.argsort(first_half)].tobytes()


def new_topic_id() -> uuid.UUID:
    """One fresh id, as from :func:`new_topic_ids`, without columns: they would take five times as long."""
    made = bytearray(os.urandom(_ID_BYTES))
    while made[0] & 0xFC == 0xF8:
        made[0] = os.urandom(1)[0]
    made[6] = made[6] & 0x0F | 0x40
    made[8] = made[8] & 0x3F | 0x80
    return uuid.UUID(bytes=bytes(made))


def topic_ids_of_a_request(count: int) -> list[uuid.UUID]:
    """Fresh ids for topics that are made together, in ascending order, with a common first byte.

    Each is as random as any other id, with 114 bits of its own. So they are adjacent in an index of ids: 500 of them
    change ten pages of it instead of nearly 500.
    """
    ids = _random_ids(count)
    ids[:, 0] = ids[:1, 0]
    made = _in_order(ids)
    return [uuid.UUID(bytes=made[at : at + _ID_BYTES]) for at in range(0, len(made), _ID_BYTES)]


def topic_id_text(topic_id: uuid.UUID) -> str:
    """The id in the form of Kafka's tools: 22 characters of URL-safe base64 without padding."""
    return base64.urlsafe_b64encode(topic_id.bytes).decode("ascii").rstrip("=")


def parse_topic_id(text: str) -> uuid.UUID:
    """The id written as base64 (22 characters, or 24 with padding) or as hyphenated or plain hexadecimal.

    Kafka's own tools print the base64 of URLs; confluent-kafka standard base64, with ``+`` and ``/``; some clients
    hexadecimal. Raises
    :exc:`~broker_core.errors.InvalidName` for anything else.
    """
    try:
        if _BASE64.fullmatch(text):
            return uuid.UUID(bytes=base64.b64decode(text[:22].replace("-", "+").replace("_", "/") + "=="))
        return uuid.UUID(text)
    except ValueError:
        shown = repr(text if len(text) <= 100 else text[:100] + "…")
        raise InvalidName(f"Invalid topic id {shown}: expected 22 characters of base64, or a UUID") from None
