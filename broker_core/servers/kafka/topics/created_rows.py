"""The encoded rows of CreateTopics: rows of created topics differ in little more than names and ids."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any, Final

from broker_core.wire.kafka import CREATE_TOPICS, Encoded, Fields, Writer

__all__ = ["CreatedRows", "encoded_rows"]

#: The first version whose rows have ids.
_WITH_IDS: Final = 7
_ID_BYTES: Final = 16


class CreatedRows:
    """The rows of created topics, in one version. Their common parts are encoded once."""

    def __init__(self, version: int) -> None:
        self._version = version
        self._is_flexible = CREATE_TOPICS.is_flexible(version)
        self._tails: dict[tuple[Any, ...], bytes] = {}

    def row(self, name: str, topic_id: uuid.UUID, rest: Fields, alike: tuple[Any, ...] | None) -> bytes:
        """One row; ``rest`` are its other fields, which are equal in all rows with the same ``alike``."""
        tail = None if alike is None else self._tails.get(alike)
        if tail is None:
            tail = self._tail(rest)
            if alike is not None:
                self._tails[alike] = tail
        writer = Writer()
        (writer.compact_string if self._is_flexible else writer.plain_string)(name)
        if self._version >= _WITH_IDS:
            writer.topic_id(topic_id)
        writer.raw(tail)
        return writer.joined()

    def _tail(self, rest: Fields) -> bytes:
        """The fields after the name and the id."""
        empty = b"".join(CREATE_TOPICS.response_elements("topics", [rest], self._version).pieces)
        name = 1 if self._is_flexible else 2
        return empty[name + (_ID_BYTES if self._version >= _WITH_IDS else 0) :]


def encoded_rows(rows: Sequence[bytes | Fields], version: int) -> Encoded:
    """All rows of an answer in their order; refused ones are not encoded yet."""
    pieces: list[bytes] = []
    error = 0
    for row in rows:
        if isinstance(row, bytes):
            pieces.append(row)
        else:
            error = error or row["error_code"]
            pieces += map(bytes, CREATE_TOPICS.response_elements("topics", [row], version).pieces)
    return Encoded(len(rows), (b"".join(pieces),), error)
