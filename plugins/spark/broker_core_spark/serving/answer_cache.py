"""Answers that differ from the generation's, kept until they are no longer right; of bounded memory.

An answer counts for as long as anybody has it: a client that reads slowly pins the one that it was given, also after a
newer one took its place. What does not fit is not made, and the question goes to the next lister.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from broker_core import BoundedCache, Selection

__all__ = ["AnswerCache", "CachedAnswer"]

#: Answers that say "as in the generation" take no more than an entry; this is for all of these.
_SAME_BYTES: Final = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class CachedAnswer:
    """What a question's answer was at version ``number``: ``selection``, or ``None`` for the generation's own."""

    number: int
    selection: Selection | None


class AnswerCache:
    """Answers by key, the least used ones make room; ``limit`` bounds the bytes of all listings that are alive."""

    def __init__(self, limit: int) -> None:
        self._made = BoundedCache[bytes, CachedAnswer](limit)
        self._same = BoundedCache[bytes, CachedAnswer](_SAME_BYTES)

    @property
    def alive_bytes(self) -> int:
        """Bytes of all listings made here that somebody still has."""
        return self._made.nbytes

    def get(self, key: bytes) -> CachedAnswer | None:
        """What is kept under ``key``."""
        return self._made.get(key) or self._same.get(key)

    def claim(self, size: int) -> bool:
        """Set ``size`` bytes apart for a listing that is about to be made, at the cost of the least used answers.

        False where they do not fit; :meth:`give_back` them once the listing is kept, or was not made.
        """
        return self._made.claim(size)

    def give_back(self, size: int) -> None:
        """Undo a :meth:`claim`."""
        self._made.give_back(size)

    def put(self, key: bytes, number: int, selection: Selection | None) -> None:
        """Keep an answer in place of one to an earlier version; a listing counts until nobody has it any more."""
        old = self.get(key)
        if old is None or old.number <= number:
            self._keep(key, CachedAnswer(number, selection))

    def renew(self, key: bytes, kept: CachedAnswer, number: int) -> None:
        """What is kept is right for version ``number`` too."""
        if self.get(key) is kept:
            self._keep(key, CachedAnswer(number, kept.selection))

    def _keep(self, key: bytes, kept: CachedAnswer) -> None:
        if kept.selection is None:
            self._made.pop(key)
            self._same.put(key, kept)
            return
        listing = kept.selection.listing
        self._same.pop(key)
        self._made.put(key, kept, listing.all().column().nbytes, owner=listing)

    def close(self) -> None:
        """Keep nothing any more."""
        self._made.clear()
        self._same.clear()
