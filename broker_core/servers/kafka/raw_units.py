"""The rows of a node's answer as units of pages, which stay bytes: columns of their keys, and slices of the answer.

What is out of the ordinary is left to those who decode it: names that are not ASCII, keys that come twice, and numbers
below 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final, TypeAlias

import numpy as np

from broker_core.servers.kafka.page import Place
from broker_core.servers.kafka.page_shapes import Shape, arrays_of
from broker_core.wire.kafka import Api, Buffer, Encoded, RawPath, RawRows, has_rows

__all__ = ["RawUnits", "asked_path", "asked_shape", "raw_path"]

_Array: TypeAlias = np.ndarray[Any, Any]

#: Bytes of the names of one field, each as long as the longest.
_MOST: Final = 16 * 1024 * 1024
_LONG: Final = 0x80
#: The fields of cursors that are numbers, as answers have them.
_NUMBERS: Final = {"partition_index": ">i4", "producer_id": ">i8", "resource_type": ">i1"}


@lru_cache(maxsize=256)
def raw_path(api: Api, version: int) -> RawPath | None:
    """What is noted of the rows of an answer of an API with pages; ``None`` for a version whose rows lack some of what
    keys are made of.
    """
    levels = arrays_of(api, version).answered
    path = tuple((level.array, tuple(level.keys.values())) for level in levels)
    return path if has_rows(api.response, version, path) else None


@lru_cache(maxsize=256)
def asked_shape(api: Api, version: int) -> Shape | None:
    """What a request asks for by name as the units of a shape of their own; ``None`` where it names nothing."""
    shape = arrays_of(api, version)
    if not shape.asked or shape.of_body or shape.by_id or shape.as_kafka:
        return None
    keys = tuple(key for level in shape.asked for key in level.keys)
    return Shape(keys, shape.asked)


@lru_cache(maxsize=256)
def asked_path(api: Api, version: int) -> RawPath | None:
    """What is noted of what a request asks for; ``None`` for a version that asks in another way."""
    shape = asked_shape(api, version)
    if shape is None:
        return None
    path = tuple((level.array, tuple(level.keys.values())) for level in shape.answered)
    return path if has_rows(api.request, version, path) else None


class RawUnits:
    """The units of the rows of an answer, in order. Of all that are ``taken``, :meth:`encoded` makes the page."""

    def __init__(self, shape: Shape, rows: RawRows, columns: dict[str, _Array], slots: list[_Array]) -> None:
        keys = [-columns[each] if each == "producer_id" else columns[each] for each in shape.order]
        order = np.arange(len(slots[0])) if _is_sorted(keys) else np.lexsort(keys[::-1])
        self.rows: Final = rows
        self._shape = shape
        #: By the field of the cursor, in the order of the units.
        self._columns = {name: column[order] for name, column in columns.items()}
        #: By level the row of each unit, -1 for one that stands for an empty row above.
        self._slots = [each[order] for each in slots]
        #: How many units up to each are not those behind the unit before them in the answer.
        self._breaks = np.cumsum(np.diff(order, prepend=order[:1]) != 1)
        #: The units of each row of the first levels.
        self._sizes = [np.bincount(each[each >= 0], minlength=1) for each in self._slots[:-1]]

    @classmethod
    def of(cls, shape: Shape, rows: RawRows) -> RawUnits | None:
        """The units of rows; ``None`` for what is out of the ordinary."""
        nested = [key for level in shape.answered for key in level.keys]
        is_other = tuple(nested) != shape.order and (len(shape.answered) > 1 and len(rows) != 1)
        if shape.of_body or is_other:
            return None
        slots = _slots(rows)
        data = np.frombuffer(rows.data, np.uint8)
        columns: dict[str, _Array] = {}
        for level, raw, at in zip(shape.answered, rows.levels, slots, strict=True):
            for name, inside in level.keys.items():
                places = np.array(raw.fields[inside], np.int64)
                kind = _NUMBERS.get(name)
                values = (
                    _names(data, places, compact=rows.compact)
                    if kind is None
                    else _numbers(data, places, kind)
                )
                if values is None:
                    return None
                start = shape.beginning[shape.fields.index(name)]
                values = np.append(
                    values, np.array([start.encode() if isinstance(start, str) else start], values.dtype)
                )
                columns[name] = values[at]  # -1 is the beginning
        units = cls(shape, rows, columns, slots)
        return None if units._has_twins() else units

    def __len__(self) -> int:
        return len(self._slots[0])

    def _has_twins(self) -> bool:
        """Whether two rows in one row, or in none, have the same key."""
        same = np.ones(max(len(self) - 1, 0), np.bool_)
        for level, at in zip(self._shape.answered, self._slots, strict=True):
            for name in level.keys:
                same &= self._columns[name][1:] == self._columns[name][:-1]
            if (same & (at[1:] != at[:-1])).any():
                return True
        return False

    @property
    def is_open(self) -> bool:
        """Whether some unit stands for an empty row."""
        return bool(len(self) and len(self._slots) > 1 and (self._slots[-1] < 0).any())

    def has_first(self, value: str) -> bool:
        """Whether the first field of a cursor has this value in some unit."""
        return value.isascii() and bool((self._columns[self._shape.fields[0]] == value.encode()).any())

    def before(self, start: Place, *, open_rows: bool = False) -> int | None:
        """How many units are before a place; ``None`` for a place that is out of the ordinary.

        ``open_rows``: empty rows stand for all that there may be in them.
        """
        depths = {name: depth for depth, level in enumerate(self._shape.answered) for name in level.keys}
        low, high = 0, len(self)  # those with the values until now
        values = dict(zip(self._shape.fields, start.key, strict=True))
        for name in self._shape.order:
            value = values[name]
            if isinstance(value, str):
                if not value.isascii() or "\0" in value:
                    return None
                value = value.encode()
            if open_rows and low < high and self._slots[depths[name]][low] < 0:
                return low
            column = self._columns[name][low:high]
            if name == "producer_id":  # the newest first
                column, value = -column, -value
            low, high = (low + int(np.searchsorted(column, value, side)) for side in ("left", "right"))
        return low

    def place(self, unit: int) -> Place:
        """Where a unit is."""
        columns = (self._columns[each] for each in self._shape.fields)
        values = (column[unit].item() for column in columns)
        return Place(tuple(value.decode() if isinstance(value, bytes) else value for value in values))

    def encoded(self, low: int, high: int) -> Encoded:
        """The rows with the units from one on up to another, without that."""
        pieces: list[Buffer] = []
        count = self._put(pieces, 0, low, high)
        return Encoded(count, pieces)

    def _put(self, pieces: list[Buffer], depth: int, low: int, high: int) -> int:
        """Add the rows of a level with these units, which are in one row above it; returns how many."""
        at = self._slots[depth]
        if low == high or at[low] < 0:
            return 0
        level, data = self.rows.levels[depth], memoryview(self.rows.data)
        # The units that rows begin with, and those behind their last ones.
        lows = np.concatenate([[low], np.flatnonzero(np.diff(at[low:high])) + low + 1])
        highs = np.append(lows[1:], high)
        rows, breaks = at[lows], self._breaks
        is_last = depth + 1 == len(self._slots)
        whole = np.ones(len(rows), np.bool_)
        if not is_last:
            whole = (highs - lows == self._sizes[depth][rows]) & (breaks[highs - 1] == breaks[lows])
        # Whole rows that are neighbours in the answer are one piece.
        goes_on = whole[1:] & whole[:-1] & (breaks[lows[1:]] == breaks[highs[:-1] - 1])
        firsts = np.concatenate([[0], np.flatnonzero(~goes_on) + 1])
        lasts = np.append(firsts[1:], len(rows)) - 1
        starts = np.frombuffer(level.starts, np.int32)[rows[firsts]]
        ends = self.rows.ends[depth][rows[lasts]]
        columns = (each.tolist() for each in (firsts, whole[firsts], starts, ends))
        for first, is_whole, start, end in zip(*columns, strict=True):
            if is_whole:
                pieces.append(data[start:end])
                continue
            row = int(rows[first])
            pieces.append(data[start : level.inner[row]])
            at_length = len(pieces)
            count = self._put(pieces, depth + 1, int(lows[first]), int(highs[first]))
            pieces.insert(at_length, self.rows.length(count))
            pieces.append(data[level.tails[row] : end])
        return len(rows)


def _slots(rows: RawRows) -> list[_Array]:
    """By level the row of each unit, in the order of the answer; -1 for one that stands for an empty row above."""
    slots = [np.arange(len(rows))]
    for level in rows.levels[:-1]:
        counts = np.array([*level.counts, 0], np.int64)
        at = slots[-1]
        here = counts[at]  # none of -1
        firsts = (np.cumsum(counts) - counts)[at]
        sizes = np.maximum(here, 1)
        above = np.repeat(np.arange(len(at)), sizes)
        within = np.arange(len(above)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        below = np.where(here[above] > 0, firsts[above] + within, -1)
        slots = [*(each[above] for each in slots), below]
    return slots


def _numbers(data: _Array, places: _Array, kind: str) -> _Array | None:
    """Whole numbers of a fixed size; ``None``, if one is negative."""
    size = np.dtype(kind).itemsize
    found = data[places[:, None] + np.arange(size)].reshape(-1).view(kind).astype(np.int64)
    return None if len(found) and found.min() < 0 else found


def _names(data: _Array, places: _Array, *, compact: bool) -> _Array | None:
    """Texts; ``None``, if one is long, or null, or not plain ASCII."""
    if not len(places):
        return np.zeros(0, "S1")
    sizes = data[places].astype(np.int64)
    if compact:
        places, sizes = places + 1, sizes - 1
        if sizes.min() < 0 or sizes.max() >= _LONG - 1:
            return None
    else:
        sizes = sizes << 8 | data[places + 1]
        places = places + 2
    longest = max(int(sizes.max()), 1)
    if longest * len(places) > _MOST or longest >= 1 << 15:
        return None
    numbers = np.arange(longest)
    inside = numbers < sizes[:, None]
    letters = data[np.minimum(places[:, None] + numbers, len(data) - 1)]
    if ((letters >= _LONG) | (letters == 0))[inside].any():
        return None
    found: _Array = np.where(inside, letters, 0).astype(np.uint8).reshape(-1).view(f"S{longest}")
    return found


def _is_sorted(keys: Sequence[_Array]) -> bool:
    """Whether rows are in the order of the columns, the first one first."""
    count = max(len(keys[0]) - 1, 0)
    less, same = np.zeros(count, np.bool_), np.ones(count, np.bool_)
    for column in keys:
        less |= same & (column[:-1] < column[1:])
        same &= column[:-1] == column[1:]
    return bool((less | same).all())
