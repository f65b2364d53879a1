"""The rows of a listing that an answer has, with their hash and size.

A part has no reference to its listing, so that the listing can cache it.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any

import numpy as np
import pyarrow as pa

from broker_core.listing.build_columns import row_type
from broker_core.listing.listing_data import RowsKey, rows_key

__all__ = ["Part", "checked_mask", "row_range"]

_Array = np.ndarray[Any, Any]


def _read_only(rows: _Array) -> _Array:
    """The same numbers, to whose memory no attribute leads: they are handed out."""
    if not rows.flags.writeable and not isinstance(rows.base, np.ndarray):
        return rows
    return np.frombuffer(pa.py_buffer(np.ascontiguousarray(rows).data.toreadonly()), rows.dtype)


def row_range(low: int, high: int, size: int) -> tuple[int, int]:
    """The bounds of a range of ``size`` rows as plain numbers, which cannot say anything else later.

    Raises :exc:`TypeError` for what is no whole number, and :exc:`IndexError` for bounds outside.
    """
    low, high = index(low), index(high)
    if not 0 <= low <= high <= size:
        raise IndexError(f"rows from {low} to {high} of {size}")
    return low, high


def checked_mask(keep: object, size: int) -> _Array:
    """A copy of a mask of ``size`` topics: the caller may still write to the array.

    Raises :exc:`TypeError` for what is no numpy array of booleans, and :exc:`ValueError` for one of another shape.
    """
    if type(keep) is not np.ndarray or keep.dtype != np.bool_:
        shown = f"an array of {keep.dtype}" if type(keep) is np.ndarray else f"a {type(keep).__name__}"
        raise TypeError(f"a mask is a numpy array of bool, one for each topic, not {shown}")
    if keep.shape != (size,):
        raise ValueError(f"a mask of shape {keep.shape} for {size} topics")
    return keep.copy()


class Part:
    """Which rows of a listing: ``low`` to ``high``, of these only ``rows`` if given; and what is known of them.

    It does not know its listing, so that a listing can remember parts of itself. ``text`` is the pattern (without its
    scheme) that the core itself has applied. ``is_given`` says that the rows came from outside: another part
    may have the same, so that what is known of them is kept by them. The parts of searches are remembered.
    """

    __slots__ = (
        "_key",
        "fields_size",
        "hash",
        "high",
        "is_checked",
        "is_direct",
        "is_given",
        "low",
        "rows",
        "text",
    )

    def __init__(self, low: int, high: int, rows: _Array | None = None, text: str | None = None) -> None:
        self.low = low
        self.high = high
        self.rows = None if rows is None else _read_only(rows)
        self.text = text
        self.hash: str | None = None
        self.fields_size: int | None = None
        self.is_given = False
        self.is_checked = False
        self.is_direct = False
        self._key: RowsKey | None = None

    @classmethod
    def of_rows(cls, rows: _Array, size: int, text: str | None = None) -> Part:
        """``rows`` (ascending, each once, not shared) of a listing of ``size``; neighbours make a slice."""
        if not len(rows):
            return cls(0, 0, text=text)
        low, high = int(rows[0]), int(rows[-1]) + 1
        if high - low == len(rows):
            return cls(low, high, text=text)
        return cls(low, high, rows.astype(row_type(size), copy=False), text)

    @classmethod
    def given_range(cls, low: int, high: int, text: str | None = None) -> Part:
        """A range that a plugin asks for."""
        part = cls(low, high, text=text)
        part.is_given = True
        return part

    @classmethod
    def given(cls, rows: _Array | Sequence[int], size: int) -> Part:
        """Rows of a plugin: copied into read-only memory and checked."""
        own = np.asarray(rows)
        if own.ndim != 1 or (len(own) and own.dtype.kind not in "iu"):
            raise ValueError("rows are one column of ascending integers, each once")
        if len(own):
            low, high = int(own.min()), int(own.max()) + 1
            if low < 0 or high > size:
                raise IndexError(f"rows from {low} to {high - 1} of {size}")
        own = np.frombuffer(own.astype(row_type(size)).tobytes(), row_type(size))
        if len(own) and (int(own[0]) < 0 or int(own[-1]) >= size or bool((own[1:] <= own[:-1]).any())):
            raise ValueError("rows are one column of ascending integers, each once")
        part = cls.of_rows(own, size)
        part.is_given = True
        return part

    def stretch(self, low: int, high: int, size: int) -> Part:
        """The rows from the one at ``low`` to the one at ``high`` of these, without the last; ``size`` as above."""
        if self.rows is None:
            return Part.given_range(self.low + low, self.low + high, self.text)
        return Part.of_rows(self.rows[low:high], size, self.text)

    def __len__(self) -> int:
        return self.high - self.low if self.rows is None else len(self.rows)

    @property
    def key(self) -> RowsKey:
        """A key for these rows within the listing."""
        if self._key is None:
            self._key = (self.low, self.high) if self.rows is None else rows_key(self.rows)
        return self._key
