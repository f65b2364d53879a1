"""CRC32C of blocks of rows, so that hashing a changed chunk, or a range, reads the names of one block only.

The text of a block is its names, each after a comma. The CRC of a text follows from the CRCs of its parts
(:mod:`~broker_core.listing.listing_hash`), so that only a block that a change touched is hashed again.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, Self

import google_crc32c
import pyarrow as pa
import pyarrow.compute as pc

from broker_core.listing.fields.fields_codec import decode_fields
from broker_core.listing.listing_hash import JoinedCrcs, TextCrc, extend_crc, joined
from broker_core.names import column_data

__all__ = ["BlockHashes", "crc_of_fields", "text_of_fields"]

#: Rows of a block that is made anew; by changes it gets smaller, and larger up to twice as many.
_BLOCK: Final = 256
#: Bytes that the CRC of a block takes, about.
_EACH: Final = 112
#: Names that are decoded at a time.
_HASHED: Final = 32 * 1024


def text_of_fields(fields: pa.LargeBinaryArray, head: int | None = None) -> Iterator[memoryview]:
    """The names of encoded fields, each after a comma, some at a time.

    ``head`` is how many bytes precede each name, if it is known and the same for all.
    """
    for low in range(0, len(fields), _HASHED):
        some = fields.slice(low, _HASHED) if len(fields) > _HASHED else fields
        known = head is not None
        texts = pc.binary_replace_slice(some, 0, head, b",") if known else decode_fields(some, comma=True)
        data, offsets = column_data(texts)
        yield memoryview(data)[offsets.item(0) : offsets.item(-1)]


def crc_of_fields(fields: pa.LargeBinaryArray, head: int | None = None) -> TextCrc:
    """The CRC of the text of encoded fields; ``head`` is as for :func:`text_of_fields`."""
    crc = size = 0
    for text in text_of_fields(fields, head):
        crc = extend_crc(crc, text)
        size += len(text)
    return TextCrc(crc, size)


class BlockHashes:
    """The CRCs of consecutive blocks of the rows of a chunk. Immutable.

    ``ends`` has the row after the last one of each block.
    """

    __slots__ = ("_joined", "crcs", "ends", "sizes")

    def __init__(
        self, ends: list[int], crcs: list[int], sizes: list[int], joined_crcs: JoinedCrcs | None = None
    ) -> None:
        self.ends = ends
        self.crcs = crcs
        self.sizes = sizes
        self._joined = joined_crcs

    @classmethod
    def of(cls, fields: pa.LargeBinaryArray) -> Self:
        """The hashes of the blocks of all rows."""
        ends: list[int] = []
        crcs: list[int] = []
        sizes: list[int] = []
        for first in range(0, len(fields), _HASHED):
            some = fields.slice(first, _HASHED)
            data, offsets = column_data(decode_fields(some, comma=True))
            text = memoryview(data)
            cuts = [*range(0, len(some), _BLOCK), len(some)]
            edges = offsets[cuts].tolist()
            ends += [first + cut for cut in cuts[1:]]
            crcs += [google_crc32c.value(text[start:stop].tobytes()) for start, stop in pairwise(edges)]
            sizes += [stop - start for start, stop in pairwise(edges)]
        return cls(ends, crcs, sizes)

    @property
    def nbytes(self) -> int:
        """Bytes that they take, about."""
        return _EACH * len(self.ends)

    @staticmethod
    def expected_bytes(rows: int) -> int:
        """Bytes that the CRCs of so many rows take."""
        return _EACH * (rows // _BLOCK + 1)

    def total(self) -> TextCrc:
        """The CRC of all rows."""
        if self._joined is None:
            self._joined = JoinedCrcs.of(self.crcs, self.sizes)
        return self._joined.total

    def between(self, fields: pa.LargeBinaryArray, low: int, high: int, head: int | None = None) -> TextCrc:
        """The CRC of rows ``low`` to ``high`` of ``fields``, which these blocks were made of; ``head`` as above."""
        first, last = bisect_left([0, *self.ends], low), bisect_right(self.ends, high)
        if first >= last:
            return crc_of_fields(fields.slice(low, high - low), head)
        begin, end = ([0, *self.ends])[first], self.ends[last - 1]
        return joined(
            [
                crc_of_fields(fields.slice(low, begin - low), head),
                JoinedCrcs.of(self.crcs[first:last], self.sizes[first:last]).total,
                crc_of_fields(fields.slice(end, high - end), head),
            ]
        )

    def after(
        self, gone: Sequence[int], put: Sequence[int], fields: pa.LargeBinaryArray
    ) -> BlockHashes | None:
        """The blocks of ``fields``, made from the rows here without ``gone``, with new ones before the rows ``put``.

        Both ascend. ``None`` if so much changed that making them anew is quicker.
        """
        if 2 * (len(gone) + len(put)) > len(self.ends) + 2:
            return None
        changed: dict[int, int] = {}  # by how many rows each touched block grew
        last = len(self.ends) - 1
        for rows, step in ((gone, -1), (put, 1)):
            for row in rows:
                block = min(bisect_right(self.ends, row), last)
                changed[block] = changed.get(block, 0) + step
        if not changed:
            return self
        # Blocks before the first changed one and after the last are taken as they are.
        first, end = min(changed), max(changed) + 1
        ends: list[int] = []
        crcs: list[int] = []
        sizes: list[int] = []
        moved = 0
        begin = self.ends[first - 1] if first else 0
        for block in range(first, end):
            start, begin = begin + moved, self.ends[block]
            moved += changed.get(block, 0)
            if block in changed:
                for low, high in _cut(start, begin + moved):
                    text = crc_of_fields(fields.slice(low, high - low))
                    ends.append(high)
                    crcs.append(text.crc)
                    sizes.append(text.size)
            else:
                ends.append(begin + moved)
                crcs.append(self.crcs[block])
                sizes.append(self.sizes[block])
        return BlockHashes(
            [*self.ends[:first], *ends, *(row + moved for row in self.ends[end:])],
            [*self.crcs[:first], *crcs, *self.crcs[end:]],
            [*self.sizes[:first], *sizes, *self.sizes[end:]],
            None if self._joined is None else self._joined.replaced(first, end, crcs, sizes),
        )


def _cut(low: int, high: int) -> list[tuple[int, int]]:
    """The rows of a changed block: no range if all are gone, several if they are too many."""
    if low >= high:
        return []
    if high - low <= 2 * _BLOCK:
        return [(low, high)]
    cuts = [*range(low, high, _BLOCK), high]
    return list(pairwise(cuts))
