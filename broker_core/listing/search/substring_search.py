"""Search for the names of a column that contain a text, or a run of byte classes, by SIMD over the column's memory.

StringZilla compares 16 to 64 bytes at once. It keeps the interpreter's lock: 0.1 to 0.2 ms for each MiB, and 0.1 us for
each find. Other threads run between the batches of finds, so a call should get a few MiB at most.

If a pattern has no text to search for, a run of bytes of given classes (:class:`ClassRun`) is searched, and leaves few
names for RE2, which takes 2 ns for each byte of a name.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Final

import numpy as np
import pyarrow as pa
import stringzilla

from broker_core.names import Array

__all__ = ["ClassRun", "rows_with"]


#: A text that one name in so many has is of no help: the work for each find costs more than a regex over all names.
_DENSE: Final = 3
_BATCH: Final = 1024  # finds, in some 0.1 ms besides the reading; the density is checked after each batch


def rows_with(text: pa.Buffer, offsets: Array, low: int, high: int, literal: bytes) -> Array | None:
    """Rows in ``[low, high)`` that may contain ``literal``, ascending (int64); ``None`` if too many contain it.

    ``offsets`` (int64) in ``text`` are where each row begins, and where the last ends. All rows that contain the
    literal are given. A find may lie across two names and hide one in the second that overlaps it: both are given, so
    the caller must look at each row. ``None`` means that a third of the names has the literal, in all or so far: the
    search is given up after the first batch of finds so dense.

    Raises :exc:`ValueError` for an empty literal.
    """
    if not literal:
        raise ValueError("an empty text is everywhere")
    bounds = offsets[low : high + 1]
    stretch = stringzilla.Str(memoryview(text)[int(bounds[0]) : int(bounds[-1])])
    sizes = map(len, stretch.split_iter(literal))
    found: list[Array] = []
    end = int(bounds[0])
    while True:
        pieces = np.fromiter(islice(sizes, _BATCH), np.int64)
        found.append(end + np.cumsum(pieces + len(literal)))
        if len(pieces) < _BATCH:
            break
        end = int(found[-1][-1])
        passed = int(np.searchsorted(bounds, end, side="right")) - 1
        if len(found) * _BATCH * _DENSE > passed:
            return None
    # A find follows each piece except the last.
    ends = (found[0] if len(found) == 1 else np.concatenate(found))[:-1]
    if not len(ends):
        return ends
    rows = low + _rows_of_finds(ends, bounds, len(literal))
    return None if len(rows) * _DENSE > high - low else rows


def _rows_of_finds(ends: Array, bounds: Array, size: int) -> Array:
    """The rows of the first and of the last byte of each find, ascending and each once."""
    rows: Array = np.searchsorted(bounds, ends - size, side="right") - 1
    across = ends > bounds[rows + 1]
    if across.any():
        last_rows = np.searchsorted(bounds, ends[across] - 1, side="right") - 1
        rows = np.sort(np.concatenate((rows, last_rows)))
    kept: Array = rows[np.concatenate(([True], rows[1:] != rows[:-1]))] if len(rows) else rows
    return kept


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

    def rows(self, text: pa.Buffer, offsets: Array, low: int, high: int) -> Array | None:
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

    def _mark(self, text: memoryview, marks: Array) -> None:
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
