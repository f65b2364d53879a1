"""Forms of a chunk's rows, which patterns match: ``tenant/namespace/topic`` without partition suffix, in UTF-8 order.

If no name is a partition and no character sorts differently in UTF-16, the order is that of the rows, and a form is
the end of its field: nothing is kept besides the fields (:class:`PlainForms`). Otherwise the forms are a column of
their own (:class:`SortedForms`), in which the partitions of a topic are in the order of their numbers.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker_core.listing.fields.fields_codec import (
    SHORT_FIELD,
    alike_start,
    binary_column,
    decode_fields,
    name_start,
)
from broker_core.names import (
    PARTITION_SUFFIX,
    Array,
    column_data,
    contains,
    sorted_rows,
    split_partitions,
    without_ends,
)

__all__ = ["ChunkForms", "PlainForms", "SortedForms", "are_plain"]

#: UTF-8 sorts characters from this lead byte on otherwise than UTF-16 does.
_FIRST_MOVED: Final = 0xEE
_END: Final = 2**31 - 1  # after the end of any name


def are_plain(fields: pa.LargeBinaryArray) -> bool:
    """Whether no name in encoded fields is a partition, and their order is the same in UTF-8 and UTF-16."""
    if _has_moved(fields) and _has_moved(decode_fields(fields)):  # such a byte may be a part of a length
        return False
    return not contains(fields, PARTITION_SUFFIX)


def _has_moved(column: pa.LargeBinaryArray | pa.LargeStringArray) -> bool:
    data, offsets = column_data(column)
    text = np.frombuffer(data, np.uint8)[int(offsets[0]) : int(offsets[-1])]
    return bool(len(text)) and int(text.max()) >= _FIRST_MOVED


class PlainForms:
    """Forms that are the ends of the fields, in their order; a position is a row."""

    __slots__ = ("_head", "_skip", "offsets", "text")

    is_identity: Final = True
    nbytes: Final = 0

    def __init__(self, fields: pa.Buffer, offsets: Array, head: int) -> None:
        """``head`` is how many bytes of each name precede its form: ``domain://``."""
        #: Contiguous memory that has every form, and the offset at which each begins at the earliest.
        self.text = fields
        self.offsets = offsets
        self._head = head
        #: How many bytes of each field precede its form; ``None`` if their lengths differ too much.
        self._skip: int | None = -1

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def between(self, low: int, high: int) -> pa.LargeStringArray:
        """The forms at the positions from ``low`` to ``high``."""
        return self._forms(binary_column(self.text, self.offsets[low : high + 1]))

    def at(self, positions: Array) -> pa.LargeStringArray:
        """The forms at the given positions."""
        return self._forms(binary_column(self.text, self.offsets).take(pa.array(positions)))

    def _forms(self, fields: pa.LargeBinaryArray) -> pa.LargeStringArray:
        if self._skip == -1:
            start = alike_start(np.diff(self.offsets))
            self._skip = None if start is None else start + self._head
        if self._skip is None:
            return decode_fields(fields, skip=self._head)
        # The names were checked, and their first bytes are whole characters.
        return pc.binary_slice(fields, self._skip, _END).view(pa.large_string())

    def rows(self, positions: Array) -> Array:
        """The rows at the given positions."""
        return positions

    def places(self, rows: Array) -> Array:
        """The positions of the given rows."""
        return rows

    def range(self, low: bytes, high: bytes, start: int = 0) -> tuple[int, int]:
        """The positions of the forms within ``[low, high)`` bytes; forms before position ``start`` are less."""
        data, offsets, head = memoryview(self.text), self.offsets.data, self._head

        def form(position: int) -> bytes:
            start, stop = offsets[position], offsets[position + 1]
            size = stop - start
            return data[start + head + (2 if size <= SHORT_FIELD else name_start(size)) : stop].tobytes()

        return _range(len(self), form, low, high, start)

    @property
    def bounds(self) -> tuple[bytes, bytes]:
        """The first and the last form; at least one form exists."""
        return self._form(0), self._form(len(self) - 1)

    def _form(self, position: int) -> bytes:
        start, stop = self.offsets.item(position), self.offsets.item(position + 1)
        return bytes(memoryview(self.text)[start + name_start(stop - start) + self._head : stop])


class SortedForms:
    """Forms in a column of their own."""

    __slots__ = ("_places", "column", "offsets", "order", "text")

    def __init__(self, column: pa.LargeStringArray, order: Array | None) -> None:
        """``order`` is the row at each position, ``None`` if each row is its own position."""
        self.column = column
        self.order = order
        data, self.offsets = column_data(column)
        self.text = data
        self._places: Array | None = None

    @classmethod
    def of(cls, names: pa.LargeStringArray, head: int) -> SortedForms:
        """The forms of the full names of all rows."""
        bases, numbers = split_partitions(names)
        return cls.of_forms(without_ends(bases, head, 0), numbers)

    @classmethod
    def of_forms(cls, forms: pa.LargeStringArray, numbers: Array | None = None) -> SortedForms:
        """Forms made from that of each row, and the numbers of partitions, which order equal forms."""
        if len(forms) < 2 or pc.all(pc.less(forms[:-1], forms[1:])).as_py():
            return cls(forms, None)
        order = sorted_rows(forms)
        if numbers is not None:
            ordered = forms.take(pa.array(order))
            differs = pc.not_equal(ordered[:-1], ordered[1:]).to_numpy(zero_copy_only=False)
            topic = np.concatenate(([0], np.cumsum(differs)))
            order = order[np.lexsort((numbers[order], topic))]
        if bool((order[1:] > order[:-1]).all()):
            return cls(forms, None)
        order = order.astype(np.int32)
        return cls(forms.take(pa.array(order)), order)

    @staticmethod
    def unsorted(names: pa.LargeStringArray, head: int) -> pa.LargeStringArray:
        """The forms of full names, in their order."""
        return without_ends(split_partitions(names)[0], head, 0)

    def __len__(self) -> int:
        return len(self.column)

    @property
    def is_identity(self) -> bool:
        return self.order is None

    @property
    def nbytes(self) -> int:
        """Bytes of the columns, of the inverse order too."""
        return int(self.column.nbytes) + (0 if self.order is None else 2 * int(self.order.nbytes))

    def between(self, low: int, high: int) -> pa.LargeStringArray:
        return self.column.slice(low, high - low)

    def at(self, positions: Array) -> pa.LargeStringArray:
        return self.column.take(pa.array(positions))

    def rows(self, positions: Array) -> Array:
        found: Array = positions if self.order is None else self.order[positions]
        return found

    def places(self, rows: Array) -> Array:
        if self.order is None:
            return rows
        if self._places is None:
            places = np.empty_like(self.order)
            places[self.order] = np.arange(len(places), dtype=places.dtype)
            self._places = places
        found: Array = self._places[rows]
        return found

    def range(self, low: bytes, high: bytes, start: int = 0) -> tuple[int, int]:
        data, offsets = memoryview(self.text), self.offsets.data
        return _range(len(self), lambda at: data[offsets[at] : offsets[at + 1]].tobytes(), low, high, start)

    @property
    def bounds(self) -> tuple[bytes, bytes]:
        return self._form(0), self._form(len(self) - 1)

    def _form(self, position: int) -> bytes:
        return bytes(memoryview(self.text)[self.offsets.item(position) : self.offsets.item(position + 1)])


ChunkForms: TypeAlias = PlainForms | SortedForms


def _range(size: int, form: Callable[[int], bytes], low: bytes, high: bytes, start: int) -> tuple[int, int]:
    every = range(size)
    near = start and start < size and form(start) >= low
    first = start if near else bisect_left(every, low, start, size, key=form)
    # As a rule the end is near, and the longer the steps the farther it is.
    at, step = first if low <= high else 0, 8
    while at + step < size and form(at + step) < high:
        at, step = at + step, 16 * step
    return first, bisect_left(every, high, at, min(at + step, size), key=form)
