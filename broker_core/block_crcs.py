"""CRCs of the blocks of a listing, made once: the hash of a long stretch of it is then that of few names and of blocks.

A listing that others encoded is hashed in many stretches: of each range that is asked for, and between the topics that
a change takes out of an answer and puts into it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa

from broker_core.crc_combine import joined_groups
from broker_core.fields_codec import binary_column, decode_fields
from broker_core.name_columns import column_data
from broker_core.topics_hash import extend_crc

__all__ = ["BlockCrcs", "text_crcs"]

#: Rows of a block.
_BLOCK: Final = 1024
#: Blocks that are decoded together.
_TOGETHER: Final = 64
_Array = np.ndarray[Any, Any]


def text_crcs(pieces: Sequence[pa.LargeBinaryArray]) -> tuple[_Array, _Array]:
    """The CRC32C and the bytes of the names in each piece of encoded fields, none of them empty, joined by commas."""
    if not pieces:
        return np.empty(0, np.uint32), np.empty(0, np.uint64)
    bounds = np.cumsum([0, *map(len, pieces)])
    data, offsets = column_data(decode_fields(pa.concat_arrays(pieces), comma=True))
    text, edges = memoryview(data), offsets[bounds].tolist()
    crcs = [extend_crc(0, text[low + 1 : high]) for low, high in pairwise(edges)]
    return np.array(crcs, np.uint32), (np.diff(edges) - 1).astype(np.uint64)


class BlockCrcs:
    """Those of one column of encoded fields, which was checked where it is asked for."""

    __slots__ = ("_crcs", "_fields", "_known", "_offsets", "_sizes")

    def __init__(self, fields: pa.Buffer, offsets: _Array) -> None:
        blocks = (len(offsets) - 1) // _BLOCK
        self._fields, self._offsets = fields, offsets
        self._crcs = np.zeros(blocks, np.uint32)
        self._sizes = np.zeros(blocks, np.uint64)
        self._known = np.zeros(blocks, bool)

    def crc(self, pieces: Sequence[pa.LargeBinaryArray | tuple[int, int]]) -> int:
        """The CRC32C of pieces joined by commas: rows ``(low, high)`` of the column, or fields of others, not empty."""
        loose: list[pa.LargeBinaryArray] = []
        order: list[tuple[int, int]] = []  # blocks [first, last), or (-1, which of the loose ones)
        for piece in pieces:
            if not isinstance(piece, tuple):
                order.append((-1, len(loose)))
                loose.append(piece)
                continue
            low, high = piece
            first, last = -(-low // _BLOCK), high // _BLOCK
            if first >= last:
                order.append((-1, len(loose)))
                loose.append(self._rows(low, high))
                continue
            if low < first * _BLOCK:
                order.append((-1, len(loose)))
                loose.append(self._rows(low, first * _BLOCK))
            self._make(first, last)
            order.append((first, last))
            if last * _BLOCK < high:
                order.append((-1, len(loose)))
                loose.append(self._rows(last * _BLOCK, high))
        if not order:
            return 0
        own, own_sizes = text_crcs(loose)
        crcs = [own[last : last + 1] if first < 0 else self._crcs[first:last] for first, last in order]
        sizes = [
            own_sizes[last : last + 1] if first < 0 else self._sizes[first:last] for first, last in order
        ]
        joined, _ = joined_groups(np.concatenate(crcs), np.concatenate(sizes), np.zeros(1, np.int64))
        return int(joined[0])

    def _rows(self, low: int, high: int) -> pa.LargeBinaryArray:
        return binary_column(self._fields, self._offsets[low : high + 1])

    def _make(self, first: int, last: int) -> None:
        """Have those of these blocks; two threads at once make the same."""
        todo = np.flatnonzero(~self._known[first:last]) + first
        for start in range(0, len(todo), _TOGETHER):
            blocks = todo[start : start + _TOGETHER]
            rows = [self._rows(block * _BLOCK, (block + 1) * _BLOCK) for block in blocks.tolist()]
            self._crcs[blocks], self._sizes[blocks] = text_crcs(rows)
            self._known[blocks] = True
