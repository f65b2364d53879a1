"""Questions with the hash of their last answer, and the version that it is for.

A client that asks again carries the hash that it has. Where the version of the namespace is still the one that a
question was answered at, the hash of the answer is known, and no row has to be read to say "unchanged". An entry is of
one version and is replaced as a whole, so that the hash of one version is never taken for another's; the version names
the history of the database too (:mod:`broker_core_postgres.history`), so that one that went back finds nothing.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final, TypeAlias

from broker_core.names import Mode, NamespaceName

__all__ = ["HashCache", "Known", "Question"]

#: Namespace, mode, the pattern that was applied, and the properties that select, sorted.
Question: TypeAlias = "tuple[NamespaceName, Mode, str | None, tuple[tuple[str, str], ...]]"

#: What an entry takes besides its texts, in bytes, about.
_OVERHEAD: Final = 600


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a question: its hash at a version, and how many bytes of names were read for it."""

    version: str
    topics_hash: str
    read_bytes: int


class HashCache:
    """At most ``limit`` bytes of entries; those that were not used for longest go first."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.nbytes = 0
        self._entries: OrderedDict[Question, tuple[Known, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, question: Question) -> Known | None:
        """What is known, of whatever version it is."""
        entry = self._entries.get(question)
        if entry is None:
            return None
        self._entries.move_to_end(question)
        return entry[0]

    def put(self, question: Question, known: Known) -> None:
        """Remember the last answer to a question, in place of the one before."""
        self._drop(question)
        size = _OVERHEAD + _text_bytes(question)
        if size > self.limit:
            return
        self._entries[question] = known, size
        self.nbytes += size
        while self.nbytes > self.limit:
            self._drop(next(iter(self._entries)))

    def clear(self) -> None:
        """Forget all."""
        self._entries.clear()
        self.nbytes = 0

    def _drop(self, question: Question) -> None:
        entry = self._entries.pop(question, None)
        if entry is not None:
            self.nbytes -= entry[1]


def _text_bytes(question: Question) -> int:
    _, _, pattern, pairs = question
    return 4 * (len(pattern or "") + sum(len(key) + len(value) for key, value in pairs))
