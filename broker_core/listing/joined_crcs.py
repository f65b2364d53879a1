"""The CRC32C of texts that follow each other, as one text: made once, and again after a change from what it was.

Each CRC is moved in front of all that is behind it (:mod:`~broker_core.listing.crc_combine`); all of these together are
the CRC of the whole. Where one text changes its size, those in front of it are moved by the difference alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, Final, NamedTuple, Self

import numpy as np

from broker_core.listing.crc_combine import COMMA_CRC, shifted, shifted_alike, shifted_one

__all__ = ["JoinedCrcs", "TextCrc", "joined", "with_first_comma", "without_first_comma"]

#: So many are moved one by one as quickly as a column.
_FEW: Final = 6
_Array = np.ndarray[Any, Any]


class TextCrc(NamedTuple):
    """The CRC32C of some names in a row, each behind a comma, and how many bytes that text has."""

    crc: int
    size: int


class JoinedCrcs:
    """The CRCs of texts that follow each other. Immutable."""

    __slots__ = ("_behind", "_moved", "size")

    def __init__(self, moved: _Array, behind: _Array, size: int) -> None:
        """``moved`` are the CRCs (uint32) in front of so many bytes ``behind`` each (int64)."""
        self._moved = moved
        self._behind = behind
        #: Bytes of all texts.
        self.size = size

    @classmethod
    def of(cls, crcs: Sequence[int], sizes: Sequence[int]) -> Self:
        """Of the CRC and the bytes of each text."""
        return cls(*_moved(crcs, sizes, 0))

    @property
    def total(self) -> TextCrc:
        """What all texts are together."""
        return TextCrc(int(np.bitwise_xor.reduce(self._moved)), self.size)

    def replaced(self, first: int, end: int, crcs: Sequence[int], sizes: Sequence[int]) -> JoinedCrcs:
        """With other texts, any number of them, in the place of those from number ``first`` to ``end``."""
        start = self._behind.item(first - 1) if first else self.size
        stop = self._behind.item(end - 1) if end else self.size
        moved, behind, begin = _moved(crcs, sizes, stop)
        grown = begin - start
        return JoinedCrcs(
            np.concatenate([shifted_alike(self._moved[:first], grown), moved, self._moved[end:]]),
            np.concatenate([self._behind[:first] + grown, behind, self._behind[end:]]),
            self.size + grown,
        )


def _moved(crcs: Sequence[int], sizes: Sequence[int], behind: int) -> tuple[_Array, _Array, int]:
    """Each CRC in front of all behind it, how many bytes those are, and how many all are with ``behind``."""
    if len(crcs) <= _FEW:
        distances = [*accumulate(reversed(sizes), initial=behind)]
        total = distances.pop()
        distances.reverse()
        few = [shifted_one(crc, distance) for crc, distance in zip(crcs, distances, strict=True)]
        return np.array(few, np.uint32), np.array(distances, np.int64), total
    ends = np.cumsum(np.array(sizes, np.int64))
    total = behind + ends.item(-1)
    every = total - ends
    return shifted(np.array(crcs, np.uint32), every), every, total


def joined(parts: Sequence[TextCrc]) -> TextCrc:
    """What texts that follow each other are together."""
    if len(parts) == 1:
        return parts[0]
    return JoinedCrcs.of([part.crc for part in parts], [part.size for part in parts]).total


def without_first_comma(text: TextCrc) -> int:
    """The CRC32C that the topics hash is of: names with commas between them."""
    if not text.size:
        return 0
    return text.crc ^ shifted_one(COMMA_CRC, text.size - 1)


def with_first_comma(crc: int, size: int) -> TextCrc:
    """The CRC of a text of ``size`` bytes that begins with a comma, of the CRC32C without that comma."""
    return TextCrc(crc ^ shifted_one(COMMA_CRC, size - 1), size)
