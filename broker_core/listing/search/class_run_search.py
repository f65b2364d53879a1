"""Search for the names of a column that have a run of bytes of given classes, by SIMD over the column's memory.

If a pattern has no text to search for, this leaves few names for RE2, which takes 2 ns for each byte of a name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import stringzilla

from broker_core.listing.search.substring_search import rows_with

__all__ = ["ClassRun"]

_Array = np.ndarray[Any, Any]
#: Bytes that are searched at a time: their marks stay in the processor's cache.
_BLOCK: Final = 512 * 1024
_WORD: Final = 8


class ClassRun:
    """A run of byte classes to search for, at most eight. Immutable."""

    __slots__ = ("_size", "_table")

    def __init__(self, run: Sequence[frozenset[int]]) -> None:
        if not 0 < len(run) <= 8:
            raise ValueError("a run of one to eight bytes")
        table = np.zeros(256, np.uint8)
        for place, some in enumerate(run):
            table[list(some)] |= 1 << place
        table |= 0xFF << len(run) & 0xFF  # after the run may be anything
        #: For each byte a bit for every place in the run where it may be.
        self._table = table.tobytes()
        self._size = len(run)

    def rows(self, text: pa.Buffer, offsets: _Array, low: int, high: int) -> _Array | None:
        """Rows in ``[low, high)`` that may have the run, in the form that
        :func:`~broker_core.listing.search.substring_search.rows_with` gives."""
        bounds = offsets[low : high + 1] - offsets[low]
        start, stop = offsets.item(low), offsets.item(high)
        size = stop - start - self._size + 1
        if size <= 0:
            return np.zeros(0, np.int64)
        marks = np.empty(size, np.uint8)
        for first in range(0, size, _BLOCK):
            self._mark(memoryview(text)[start + first : stop], marks[first : first + _BLOCK])
        rows = rows_with(pa.py_buffer(marks), bounds, 0, high - low, b"\1")
        return None if rows is None else rows + low

    def _mark(self, text: memoryview, marks: _Array) -> None:
        """Set ``marks`` to 1 where a run begins in the text, to 0 elsewhere."""
        size = len(marks) + self._size - 1
        places = np.empty((size // _WORD + 2) * _WORD, np.uint8)
        places[size:] = 0xFF
        stringzilla.translate(stringzilla.Str(text[:size]), self._table, out=places[:size])
        moved = np.empty_like(places)
        length = 1  # bytes of which each byte has the places by now: itself and the next ones
        while length < self._size:
            # Eight bytes at once. Bits that a byte gets from its neighbour are of places not read any more.
            np.right_shift(places.view(np.uint64), length, out=moved.view(np.uint64))
            np.bitwise_and(places[:-length], moved[length:], out=places[:-length])
            length *= 2
        np.bitwise_and(places[: len(marks)], 1, out=marks)
