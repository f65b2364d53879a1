"""Answers that differ from the generation's, kept until they are no longer right; of bounded memory.

An answer counts for as long as anybody has it: a client that reads slowly pins the one that it was given, also after a
newer one took its place. What does not fit is not made, and the question goes to the next lister.
"""

from __future__ import annotations

import threading
import weakref
from dataclasses import dataclass
from typing import Final

from broker_core import BoundedCache, Listing, Selection

__all__ = ["Kept", "KeptAnswers"]

#: Bytes of an entry beside the listing, with the kilobyte that the cache counts.
_ENTRY: Final = 600
#: Answers that say "as in the generation" take no more than an entry; this is for all of these.
_SAME_BYTES: Final = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Kept:
    """What a question's answer was at version ``number``: ``selection``, or ``None`` for the generation's own."""

    number: int
    selection: Selection | None


class KeptAnswers:
    """Answers by key, the least used ones make room; ``limit`` bounds the bytes of all listings that are alive."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        # What is alive is bounded by `claim`, whether it is kept here or not.
        self._kept = BoundedCache[bytes, Kept](limit + _SAME_BYTES)
        self._alive: dict[int, tuple[weakref.ref[Listing], int]] = {}
        self._bytes = 0
        self._next = 0
        # A listing may go in any thread, also in the midst of what is done here.
        self._lock = threading.RLock()

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def alive_bytes(self) -> int:
        """Bytes of all listings made here that somebody still has."""
        return self._bytes

    def get(self, key: bytes) -> Kept | None:
        """What is kept under ``key``."""
        return self._kept.get(key)

    def claim(self, size: int) -> bool:
        """Set ``size`` bytes apart for a listing that is about to be made, at the cost of the least used answers.

        False where they do not fit; :meth:`give_back` them once the listing is kept, or was not made.
        """
        if size > self.limit:
            return False
        if self._bytes + size > self.limit:
            for key in self._kept.keys():  # noqa: SIM118 - no mapping
                self._drop(key)
                if self._bytes + size <= self.limit:
                    break
        if self._bytes + size > self.limit:
            return False
        with self._lock:
            self._bytes += size
        return True

    def _drop(self, key: bytes) -> None:
        kept = self._kept.get(key)
        if kept is not None and kept.selection is not None:
            self._kept.pop(key)

    def give_back(self, size: int) -> None:
        """Undo a :meth:`claim`."""
        with self._lock:
            self._bytes -= size

    def put(self, key: bytes, number: int, selection: Selection | None) -> None:
        """Keep an answer in place of one to an earlier version; a listing counts until nobody has it any more."""
        if selection is not None:
            self._count(selection.listing)
        old = self._kept.get(key)
        if old is None or old.number <= number:
            self._keep(key, Kept(number, selection))

    def renew(self, key: bytes, kept: Kept, number: int) -> None:
        """What is kept is right for version ``number`` too."""
        if self._kept.get(key) is kept:
            self._keep(key, Kept(number, kept.selection))

    def _keep(self, key: bytes, kept: Kept) -> None:
        self._kept.put(key, kept, 0 if kept.selection is None else kept.selection.listing.column_bytes)

    def _count(self, listing: Listing) -> None:
        size = listing.column_bytes + _ENTRY
        with self._lock:
            self._next += 1
            number = self._next
            self._alive[number] = (weakref.ref(listing, lambda _: self._gone(number)), size)
            self._bytes += size

    def _gone(self, number: int) -> None:
        with self._lock:
            self._bytes -= self._alive.pop(number)[1]

    def close(self) -> None:
        """Keep nothing any more."""
        self._kept.clear()
