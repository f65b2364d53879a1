"""Search for the names of a column that contain a text, by SIMD over the contiguous memory of the column.

StringZilla compares 16 to 64 bytes at once. It keeps the interpreter's lock: 0.1 to 0.2 ms for each MiB, and 0.1 us for
each find. Other threads run between the batches of finds, so a call should get a few MiB at most.
"""

from __future__ import annotations

from itertools import islice
from typing import Any, Final

import numpy as np
import pyarrow as pa
import stringzilla

__all__ = ["rows_with"]

#: A text that one name in so many has is of no help: the work for each find costs more than a regex over all names.
_DENSE: Final = 3
_BATCH: Final = 1024  # finds, in some 0.1 ms besides the reading; the density is checked after each batch

_Array = np.ndarray[Any, Any]


def rows_with(text: pa.Buffer, offsets: _Array, low: int, high: int, literal: bytes) -> _Array | None:
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
    found: list[_Array] = []
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


def _rows_of_finds(ends: _Array, bounds: _Array, size: int) -> _Array:
    """The rows of the first and of the last byte of each find, ascending and each once."""
    rows: _Array = np.searchsorted(bounds, ends - size, side="right") - 1
    across = ends > bounds[rows + 1]
    if across.any():
        last_rows = np.searchsorted(bounds, ends[across] - 1, side="right") - 1
        rows = np.sort(np.concatenate((rows, last_rows)))
    kept: _Array = rows[np.concatenate(([True], rows[1:] != rows[:-1]))] if len(rows) else rows
    return kept
