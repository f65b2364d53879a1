"""The cache of answers that differ from the generation's, bounded in memory.

An answer takes the memory of its changed chunks: the others are the generation's, which is a mapped file. Chunks count
as long as anybody has them: a slow client pins its answer after a newer one replaced it, and both share equal chunks.
An answer that does not fit is not made, and its question passes to the next lister.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from broker_core import BoundedCache, Selection

__all__ = ["AnswerCache", "CachedAnswer"]

#: Bytes of all entries that only say "as in the generation".
_SAME_BYTES: Final = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class CachedAnswer:
    """A question's answer at version ``number``. ``selection`` is ``None`` for the generation's own answer."""

    number: int
    selection: Selection | None


class AnswerCache:
    """Answers by key. The least used ones make room. ``limit`` bounds the bytes of all living answers."""

    def __init__(self, limit: int) -> None:
        #: The answers with changes: its bytes are those of all that somebody still has, and of claims.
        self.made = BoundedCache[bytes, CachedAnswer](limit)
        self._same = BoundedCache[bytes, CachedAnswer](_SAME_BYTES)

    def get(self, key: bytes) -> CachedAnswer | None:
        """The answer of a key."""
        return self.made.get(key) or self._same.get(key)

    def put(self, key: bytes, number: int, selection: Selection | None) -> None:
        """Keep an answer unless a later version's is kept."""
        old = self.get(key)
        if old is None or old.number <= number:
            kept = CachedAnswer(number, selection)
            if selection is None:
                self.made.pop(key)
                self._same.put(key, kept)
            else:
                self._same.pop(key)
                self.made.put(key, kept, selection.remembered_bytes, parts=selection.listing.memory)

    def close(self) -> None:
        """Drop all answers."""
        self.made.clear()
        self._same.clear()
