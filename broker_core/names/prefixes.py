"""A set of prefixes: which one a name has, and which ones a range of names may have."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence

__all__ = ["Prefixes"]


class Prefixes:
    """A set of prefixes, as UTF-8; immutable.

    A prefix that another one covers is left out: so a name can have at most one prefix, the greatest one that is not
    greater than the name.
    """

    __slots__ = ("_sorted",)

    def __init__(self, prefixes: Iterable[str]) -> None:
        kept: list[bytes] = []
        for prefix in sorted(prefix.encode() for prefix in prefixes):
            if not kept or not prefix.startswith(kept[-1]):
                kept.append(prefix)
        self._sorted = kept

    def __bool__(self) -> bool:
        return bool(self._sorted)

    def cover(self, name: bytes) -> bool:
        """Whether a name has one of the prefixes."""
        place = bisect_right(self._sorted, name) - 1
        return place >= 0 and name.startswith(self._sorted[place])

    def between(self, first: bytes, last: bytes) -> Sequence[bytes]:
        """The prefixes that a name from ``first`` to ``last`` may have, in order."""
        start = bisect_right(self._sorted, first)
        if self.cover(first):
            start -= 1
        return self._sorted[start : bisect_right(self._sorted, last)]
