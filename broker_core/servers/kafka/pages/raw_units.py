"""The rows of a node's answer as units of pages, which stay bytes: columns of their keys, and slices of the answer.

Unusual rows have to be decoded: names that are not ASCII, keys that come twice, and numbers below 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from broker_core.servers.kafka.pages.answer_page import UnitPlace
from broker_core.servers.kafka.pages.page_shapes import PageShape, arrays_of
from broker_core.wire.kafka import Api, Buffer, Encoded, Fields, RawPath, RawRows, has_rows

__all__ = ["FEW_PIECES", "RawUnits", "kept_size", "raw_path", "requested_path", "requested_shape"]

_Array: TypeAlias = np.ndarray[Any, Any]

#: Bytes of memory for each byte of an answer that is kept with its units.
_KEPT: Final = 2
#: Bytes of the names of one field, each as long as the longest.
_MOST: Final = 16 * 1024 * 1024
_LONG: Final = 0x80
#: Bytes of texts that are sorted as numbers.
_SHORT: Final = 64
#: Bytes of pieces, on average, that are copied.
_SMALL: Final = 1024
#: Pieces that are quicker copied one by one.
FEW_PIECES: Final = 256
#: Before all offsets: the places of lengths of arrays, less the numbers of their rows.
_COUNT: Final = -2
#: The fields of cursors that are numbers, as answers have them.
_NUMBERS: Final = {"partition_index": ">i4", "producer_id": ">i8", "resource_type": ">i1"}


@lru_cache(maxsize=256)
def raw_path(api: Api, version: int) -> RawPath | None:
    """The fields to note of the rows of an answer of an API with pages; ``None`` for a version whose rows lack parts of
    keys.
    """
    levels = arrays_of(api, version).answered
    path = tuple((level.array, tuple(level.keys.values())) for level in levels)
    return path if has_rows(api.response, version, path) else None


@lru_cache(maxsize=256)
def requested_shape(api: Api, version: int) -> PageShape | None:
    """The names in a request as the units of a shape of their own; ``None`` if it names nothing."""
    shape = arrays_of(api, version)
    if not shape.requested or shape.of_body or shape.as_kafka:
        return None
    keys = tuple(key for level in shape.requested for key in level.keys)
    return PageShape(keys, shape.requested)


@lru_cache(maxsize=256)
def requested_path(api: Api, version: int) -> RawPath | None:
    """The fields to note of the names in a request; ``None`` for a version that asks in another way."""
    shape = requested_shape(api, version)
    if shape is None:
        return None
    path = tuple((level.array, tuple(level.keys.values())) for level in shape.answered)
    by_id = arrays_of(api, version).by_id
    with_ids = ((path[0][0], (*path[0][1], by_id)), *path[1:])
    if by_id and has_rows(api.request, version, with_ids):
        return with_ids
    return path if has_rows(api.request, version, path) else None


def kept_size(fields: Fields) -> int:
    """Bytes of memory of an answer that is kept, as far as its rows stay bytes."""
    return sum(_KEPT * rows.nbytes for rows in fields.values() if isinstance(rows, RawRows))


class RawUnits:
    """The units of the rows of an answer, in order. :meth:`encoded` makes the page of ``taken`` ones."""

    def __init__(
        self, shape: PageShape, rows: RawRows, columns: dict[str, _Array], slots: list[_Array]
    ) -> None:
        keys = [
            words
            for each in shape.order
            for words in _words(-columns[each] if each == "producer_id" else columns[each])
        ]
        if keys and not _is_sorted(keys):
            order = np.lexsort(keys[::-1])
            columns = {name: column[order] for name, column in columns.items()}
            slots = [each[order] for each in slots]
        self.rows: Final = rows
        self._shape = shape
        #: The column of each field of the cursor, in the order of the units.
        self._columns = columns
        #: The row of each unit by level, -1 for a unit that stands for an empty row above.
        self._slots = slots

    @classmethod
    def of(cls, shape: PageShape, rows: RawRows) -> RawUnits | None:
        """The units of rows; ``None`` for unusual rows."""
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

    @property
    def nbytes(self) -> int:
        """Bytes of memory beside the rows: a name stands at each unit, as long as the longest one."""
        return sum(each.nbytes for each in (*self._columns.values(), *self._slots))

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

    def firsts(self, low: int, high: int) -> set[str]:
        """The values of the first field of a cursor in the units from ``low`` to ``high``, without the last."""
        values = np.unique(self._columns[self._shape.fields[0]][low:high])
        return {value.decode() for value in values.tolist()}

    def before(self, start: UnitPlace, *, open_rows: bool = False) -> int | None:
        """The number of units before a place; ``None`` for an unusual place.

        ``open_rows``: empty rows stand for any units in them.
        """
        depths = {name: depth for depth, level in enumerate(self._shape.answered) for name in level.keys}
        low, high = 0, len(self)  # the units with the values until now
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

    def place(self, unit: int) -> UnitPlace:
        """The place of a unit."""
        columns = (self._columns[each] for each in self._shape.fields)
        values = (column[unit].item() for column in columns)
        return UnitPlace(tuple(value.decode() if isinstance(value, bytes) else value for value in values))

    def encoded(self, low: int, high: int) -> Encoded:
        """The rows with the units from ``low`` to ``high``, without the last."""
        count, begins, ends = self._ranges(low, high)
        is_one = len(begins) > 1 and int((ends - begins).sum()) < _SMALL * len(begins)  # piece on its way
        if is_one and len(begins) > FEW_PIECES:
            return Encoded(count, [self._copied(begins, ends)])
        data = memoryview(self.rows.data)
        pieces: list[Buffer] = [
            data[start:end] if start >= 0 else self.rows.length(_COUNT - start)
            for start, end in zip(begins.tolist(), ends.tolist(), strict=True)
        ]
        return Encoded(count, [b"".join(pieces)] if is_one else pieces)

    def _copied(self, begins: _Array, ends: _Array) -> bytes:
        """The bytes of ranges (:meth:`_ranges`), one after another."""
        data, made = self.rows.data, np.flatnonzero(begins < 0)
        if len(made):  # lengths that the answer does not have go behind it
            lengths = [self.rows.length(_COUNT - start) for start in begins[made].tolist()]
            edges = len(data) + np.cumsum([0, *map(len, lengths)])
            data = b"".join((data, *lengths))
            begins, ends = begins.copy(), ends.copy()
            begins[made], ends[made] = edges[:-1], edges[1:]
        order = np.argsort(begins)
        places = np.empty_like(order)
        places[order] = np.arange(0, 2 * len(order), 2)
        # Each range, and what is behind it.
        edges = np.stack([begins[order], ends[order]], axis=1).ravel()
        every = pa.LargeBinaryArray.from_buffers(
            pa.large_binary(), len(edges) - 1, [None, pa.py_buffer(edges), pa.py_buffer(data)]
        )
        taken: bytes = every.take(pa.array(places)).buffers()[2].to_pybytes()
        return taken

    def _depth(self, low: int, high: int) -> int:
        """Depth from which rows are copied unchanged, since a page takes all their units, in the answer's order."""
        for depth, at in enumerate(self._slots[:-1]):
            cuts = (each for each in (low, high) if 0 < each < len(at))
            is_cut = any(at[each] >= 0 and at[each - 1] == at[each] for each in cuts)
            if not is_cut and not self._jumps[depth][low : high - 1].any():
                return depth
        return len(self._slots) - 1

    @cached_property
    def _jumps(self) -> list[_Array]:
        """Whether the unit after each one is in its row, but not next in the answer; by level, without the last."""
        last = self._slots[-1]
        jumps = (last[1:] != last[:-1] + 1) | (last[:-1] < 0)
        return [jumps & (at[1:] == at[:-1]) & (at[1:] >= 0) for at in self._slots[:-1]]

    def _ranges(self, low: int, high: int) -> tuple[int, _Array, _Array]:
        """The number of rows with these units, and the ranges of their bytes; for the length of an array of ``n`` rows
        that the answer does not have, one from ``_COUNT - n`` to ``_COUNT + 1``.

        By unit, or by row that is passed on as it is, a range for the head of each row above that begins with it, and
        for the length of its array, then its own, and one for the bytes after the array of each row above that ends
        with it. Adjacent ranges are joined.
        """
        if low == high:
            return 0, np.zeros(0, np.int64), np.zeros(0, np.int64)
        last = self._depth(low, high)
        slots = [at[low:high] for at in self._slots[: last + 1]]
        firsts = [np.append(True, at[1:] != at[:-1]) for at in slots]
        for depth in range(last):
            firsts[depth + 1] |= firsts[depth]
        if last + 1 < len(self._slots):
            slots = [at[firsts[last]] for at in slots]
            firsts = [each[firsts[last]] for each in firsts]
        size = len(slots[0])
        begins = np.zeros((size, 3 * last + 1), np.int64)
        ends = np.zeros_like(begins)
        for depth, at in enumerate(slots[:-1]):
            level, first = self.rows.levels[depth], np.flatnonzero(firsts[depth])
            rows_below = np.add.reduceat(firsts[depth + 1] & (slots[depth + 1] >= 0), first, dtype=np.int64)
            final = np.append(first[1:], size) - 1
            is_there = at[first] >= 0
            first, final, rows_below = first[is_there], final[is_there], rows_below[is_there]
            rows = at[first]
            inner, tails = np.asarray(level.inner)[rows], np.asarray(level.tails)[rows]
            counts, suffix_length = np.asarray(level.counts)[rows], self._suffix_lengths[depth][rows]
            is_whole = rows_below == counts
            head, tail = 2 * depth, 3 * last - depth
            begins[first, head], ends[first, head] = np.asarray(level.starts)[rows], inner
            begins[first, head + 1] = np.where(is_whole, inner, _COUNT - rows_below)
            ends[first, head + 1] = np.where(is_whole, suffix_length, _COUNT + 1)
            begins[final, tail], ends[final, tail] = tails, self.rows.ends[depth][rows]
        is_there = slots[-1] >= 0
        rows = slots[-1][is_there]
        begins[is_there, 2 * last] = np.asarray(self.rows.levels[last].starts)[rows]
        ends[is_there, 2 * last] = self.rows.ends[last][rows]
        some = begins < ends
        found, until = begins[some], ends[some]
        goes_on = found[1:] == until[:-1]
        found, until = found[np.append(True, ~goes_on)], until[np.append(~goes_on, True)]
        return int(firsts[0].sum()), found, until

    @cached_property
    def _suffix_lengths(self) -> list[_Array]:
        """The offsets after the lengths of the arrays in the rows of each level but the last."""
        found = []
        for level, below in pairwise(self.rows.levels):
            counts = np.asarray(level.counts)
            starts = np.append(np.asarray(below.starts), 0)
            found.append(np.where(counts > 0, starts[np.cumsum(counts) - counts], np.asarray(level.tails)))
        return found


def _slots(rows: RawRows) -> list[_Array]:
    """The row of each unit by level, in the order of the answer; -1 for a unit that stands for an empty row above."""
    slots = [np.arange(len(rows))]
    for level in rows.levels[:-1]:
        counts = np.append(np.asarray(level.counts), 0).astype(np.int64)
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
    if int(places.max()) + longest > len(data):
        data = np.append(data, np.zeros(longest, np.uint8))
    windows: _Array = np.ndarray(len(data) - longest + 1, f"S{longest}", data, strides=(1,))
    found = windows[places]
    letters = found.view(np.uint8).reshape(len(found), longest)
    is_unusual = letters - np.uint8(1) >= _LONG - 1
    if int(sizes.min()) < longest:
        inside = np.arange(longest) < sizes[:, None]
        is_unusual &= inside
        letters *= inside
    return None if is_unusual.any() else found


def _words(column: _Array) -> list[_Array]:
    """Columns of numbers with the order of a column of texts, as far as they differ; numbers sort ten times faster."""
    size = column.dtype.itemsize
    if column.dtype.kind != "S" or size > _SHORT or not len(column):
        return [column]
    padded = np.zeros((len(column), -(-size // 8) * 8), np.uint8)
    padded[:, :size] = column.view(np.uint8).reshape(len(column), size)
    words = padded.view(">u8").astype(np.uint64)
    return [words[:, each] for each in range(words.shape[1]) if (words[:, each] != words[0, each]).any()]


def _is_sorted(keys: Sequence[_Array]) -> bool:
    """Whether rows are in the order of the columns, the first one first."""
    count = max(len(keys[0]) - 1, 0)
    less, same = np.zeros(count, np.bool_), np.ones(count, np.bool_)
    for column in keys:
        less |= same & (column[:-1] < column[1:])
        same &= column[:-1] == column[1:]
    return bool((less | same).all())
