"""Cursors: the start of the next page, as opaque text that is safe in URLs.

A cursor is a position by name (:class:`~broker_core.listing.pages.page.Position`), so it stays valid whatever comes and
goes around it, on every server, for any time. It is no secret and gives no rights: each page is answered by the rights
of its asker. A sum of its bytes exposes a shortened or mistyped one, which would leave out names in silence.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Final

import google_crc32c

from broker_core.listing import NO_PARTITION, Position
from broker_core.names import MAX_NAME_BYTES, NamespaceName, TopicName

__all__ = ["MAX_CURSOR", "cursor_of", "read_cursor"]

#: The first byte after the sum, which differs by release.
_VERSION: Final = b"\x01"
_SUM_BYTES: Final = 4
#: The partition with one added, so that -1 (no partition) is 0.
_PARTITION_BYTES: Final = 4
_HEAD: Final = len(_VERSION) + _SUM_BYTES + _PARTITION_BYTES
#: The most characters of a cursor, whose name has a scheme and a namespace before the local name.
MAX_CURSOR: Final = -(-4 * (_HEAD + MAX_NAME_BYTES + 2048) // 3)
_TEXT: Final = re.compile(r"[A-Za-z0-9_-]+")


def cursor_of(position: Position) -> str:
    """The cursor of a position."""
    partition = (position.partition - NO_PARTITION).to_bytes(_PARTITION_BYTES, "big")
    content = _VERSION + partition + position.base.encode()
    return base64.urlsafe_b64encode(_sum(content) + content).decode().rstrip("=")


def read_cursor(text: str, namespace: NamespaceName) -> Position:
    """The position of a cursor that :func:`cursor_of` gave for this namespace.

    Raises :exc:`ValueError` for anything else, in words that follow ``parameter cursor``.
    """
    if len(text) > MAX_CURSOR or _TEXT.fullmatch(text) is None:
        raise ValueError("is no cursor: give `next` of the page before, as it is")
    try:
        given = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except binascii.Error:
        given = b""
    content = given[_SUM_BYTES:]
    if not content or given[:_SUM_BYTES] != _sum(content):
        raise ValueError("is no cursor, or not all of one: give `next` of the page before, as it is")
    if not content.startswith(_VERSION):
        raise ValueError("is of another version of the server: begin again without it")
    content = content[len(_VERSION) :]
    number = int.from_bytes(content[:_PARTITION_BYTES], "big") + NO_PARTITION
    try:
        position = Position(content[_PARTITION_BYTES:].decode(), number)
    except ValueError:
        raise ValueError("is no cursor: give `next` of the page before, as it is") from None
    if TopicName.parse(position.base).namespace != namespace:
        raise ValueError(f"is one of another namespace than {namespace}")
    return position


def _sum(content: bytes) -> bytes:
    crc: int = google_crc32c.value(content)
    return crc.to_bytes(_SUM_BYTES, "big")
