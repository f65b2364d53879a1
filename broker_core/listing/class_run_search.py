"""Finding the names of a column that have a run of bytes, each one of a few, by SIMD over the column's memory.

Where a pattern has no text to search for, this leaves a few names for RE2, which takes 2 ns for each byte of a name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import stringzilla

from broker_core.listing.substring_search import rows_with

__all__ = ["ClassRun"]

_Array = np.ndarray[Any, Any]


class ClassRun:
    """A run of bytes to be searched, of eight at the most. Immutable."""

    __slots__ = ("_size", "_table")

    def __init__(self, run: Sequence[frozenset[int]]) -> None:
        if not 0 < len(run) <= 8:
            raise ValueError("a run of one to eight bytes")
        table = np.zeros(256, np.uint8)
        for place, some in enumerate(run):
            table[list(some)] |= 1 << place
        #: For each byte a bit for every place in the run that it may have.
        self._table = table.tobytes()
        self._size = len(run)

    def rows(self, text: pa.Buffer, offsets: _Array, low: int, high: int) -> _Array | None:
        """Rows in ``[low, high)`` that may have the run: what
        :func:`~broker_core.listing.substring_search.rows_with` gives for a text."""
        bounds = offsets[low : high + 1] - offsets[low]
        start, stop = offsets.item(low), offsets.item(high)
        size = stop - start - self._size + 1
        if size <= 0:
            return np.zeros(0, np.int64)
        stretch = memoryview(text)[start:stop]
        places = np.frombuffer(stringzilla.translate(stringzilla.Str(stretch), self._table), np.uint8)
        marks = places[:size] & 1
        moved = np.empty_like(marks)
        for place in range(1, self._size):
            np.right_shift(places[place : place + size], place, out=moved)
            np.bitwise_and(marks, moved, out=marks)
        rows = rows_with(pa.py_buffer(marks), bounds, 0, high - low, b"\1")
        return None if rows is None else rows + low
