"""The CRC32C of consecutive texts as one text: made once, and updated after a change.

Each CRC is shifted past all texts after it (:mod:`~broker_core.listing.hashes.crc_combine`); the XOR of all is the CRC
of the whole. If a text changes its size, the CRCs before it are shifted by the difference only.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, Final, NamedTuple, Self

import numpy as np

from broker_core.listing.hashes.crc_combine import COMMA_CRC, shifted, shifted_alike, shifted_one

__all__ = ["JoinedCrcs", "TextCrc", "joined", "with_first_comma", "without_first_comma"]

#: So many are moved one by one as quickly as a column.
_FEW: Final = 6
_Array = np.ndarray[Any, Any]


class TextCrc(NamedTuple):
    """The CRC32C of some names in a row, each after a comma, and how many bytes that text has."""

    crc: int
    size: int


class JoinedCrcs:
    """The CRCs of consecutive texts. Immutable."""

    __slots__ = ("_following", "_moved", "size")

    def __init__(self, moved: _Array, following: _Array, size: int) -> None:
        """``moved`` are the CRCs (uint32), each shifted past the number of bytes ``following`` it (int64)."""
        self._moved = moved
        self._following = following
        #: Bytes of all texts.
        self.size = size

    @classmethod
    def of(cls, crcs: Sequence[int], sizes: Sequence[int]) -> Self:
        """From the CRC and the size in bytes of each text."""
        return cls(*_moved(crcs, sizes, 0))

    @property
    def total(self) -> TextCrc:
        """The CRC and the size of all texts as one."""
        return TextCrc(int(np.bitwise_xor.reduce(self._moved)), self.size)

    def replaced(self, first: int, end: int, crcs: Sequence[int], sizes: Sequence[int]) -> JoinedCrcs:
        """The CRCs with other texts, any number of them, in place of the texts number ``first`` to ``end``."""
        start = self._following.item(first - 1) if first else self.size
        stop = self._following.item(end - 1) if end else self.size
        moved, following, begin = _moved(crcs, sizes, stop)
        grown = begin - start
        return JoinedCrcs(
            np.concatenate([shifted_alike(self._moved[:first], grown), moved, self._moved[end:]]),
            np.concatenate([self._following[:first] + grown, following, self._following[end:]]),
            self.size + grown,
        )


def _moved(crcs: Sequence[int], sizes: Sequence[int], following: int) -> tuple[_Array, _Array, int]:
    """Each CRC shifted past all texts after it, how many bytes these have, and how many all have with ``following``."""
    if len(crcs) <= _FEW:
        distances = [*accumulate(reversed(sizes), initial=following)]
        total = distances.pop()
        distances.reverse()
        few = [shifted_one(crc, distance) for crc, distance in zip(crcs, distances, strict=True)]
        return np.array(few, np.uint32), np.array(distances, np.int64), total
    ends = np.cumsum(np.array(sizes, np.int64))
    total = following + ends.item(-1)
    every = total - ends
    return shifted(np.array(crcs, np.uint32), every), every, total


def joined(parts: Sequence[TextCrc]) -> TextCrc:
    """The CRC and the size of consecutive texts as one."""
    if len(parts) == 1:
        return parts[0]
    return JoinedCrcs.of([part.crc for part in parts], [part.size for part in parts]).total


def without_first_comma(text: TextCrc) -> int:
    """The CRC32C for the topics hash: of names with commas between them."""
    if not text.size:
        return 0
    return text.crc ^ shifted_one(COMMA_CRC, text.size - 1)


def with_first_comma(crc: int, size: int) -> TextCrc:
    """The CRC of a text of ``size`` bytes that begins with a comma, from the CRC32C without that comma."""
    return TextCrc(crc ^ shifted_one(COMMA_CRC, size - 1), size)
