"""The body of an answer, a piece at a time: a shared listing is not copied, gathered rows are never all in memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa

from broker_core.listing.build_columns import gathered

__all__ = ["GATHERED", "FieldsReader"]

#: Bytes that are gathered at a time. Some 100 microseconds, so that it may be done on the event loop.
GATHERED: Final = 128 * 1024

_Array = np.ndarray[Any, Any]


class FieldsReader:
    """Encoded fields of a listing, in order: rows ``low`` to ``high``, of these only ``rows`` if given.

    ``left`` is how many bytes there are still to :meth:`read`.
    """

    __slots__ = ("_block", "_blocks", "left")

    def __init__(
        self, fields: pa.Buffer, offsets: _Array, low: int, high: int, rows: _Array | None = None
    ) -> None:
        whole = memoryview(fields)[int(offsets[low]) : int(offsets[high])]
        if rows is None:
            self._block = whole
            self._blocks: Iterator[memoryview] = iter(())
            self.left = len(whole)
        else:
            self._block = memoryview(b"")
            self._blocks = _gathered_blocks(fields, offsets, rows)
            self.left = int((offsets[1:][rows] - offsets[:-1][rows]).sum())

    @classmethod
    def of(cls, data: bytes | memoryview) -> FieldsReader:
        """Bytes that are there already."""
        return cls(pa.py_buffer(data), np.array([0, len(data)], np.int64), 0, 1)

    def read(self, most: int) -> memoryview:
        """The next bytes, at most ``most`` of them; none where nothing is left."""
        while not len(self._block) and self.left:
            self._block = next(self._blocks)
        piece, self._block = self._block[:most], self._block[most:]
        self.left -= len(piece)
        return piece


def _gathered_blocks(fields: pa.Buffer, offsets: _Array, rows: _Array) -> Iterator[memoryview]:
    first = 0
    step = 1024
    while first < len(rows):
        some = rows[first : first + step]
        ends = np.cumsum(offsets[1:][some] - offsets[:-1][some])
        count = max(1, int(np.searchsorted(ends, GATHERED, side="right")))
        step = max(1024, 2 * count)
        yield memoryview(gathered(fields, offsets, some[:count])[0])
        first += count
