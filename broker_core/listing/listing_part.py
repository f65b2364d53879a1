"""The rows of a listing that an answer has, with their hash and size.

A part has no reference to its listing, so that the listing can cache it.

Its hash is computed once, and remembered if others may need it. Its topics can be read as Arrow record batches: full
names, encoded fields, and what patterns match.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from itertools import accumulate, pairwise
from operator import index
from typing import Any

import numpy as np
import pyarrow as pa

from broker_core.counted import counted
from broker_core.listing.chunks.chunk_rows import Remembered
from broker_core.listing.listing_data import ListingData, Pieces, RowsKey
from broker_core.names import Array, matched_forms

__all__ = ["ListingPart", "checked_mask", "row_range"]


def row_range(low: int, high: int, size: int) -> tuple[int, int]:
    """The bounds of a range of ``size`` rows as plain numbers, which cannot change later.

    Raises :exc:`TypeError` for anything but whole numbers, and :exc:`IndexError` for bounds outside.
    """
    low, high = index(low), index(high)
    if not 0 <= low <= high <= size:
        raise IndexError(f"rows from {low} to {high} of {size}")
    return low, high


def checked_mask(keep: object, size: int) -> Array:
    """A copy of a mask of ``size`` topics: the caller may still write to the array.

    Raises :exc:`TypeError` for anything but a numpy array of booleans, and :exc:`ValueError` for one of another shape.
    """
    if type(keep) is not np.ndarray or keep.dtype != np.bool_:
        shown = f"an array of {keep.dtype}" if type(keep) is np.ndarray else f"a {type(keep).__name__}"
        raise TypeError(f"a mask is a numpy array of bool, one for each topic, not {shown}")
    if keep.shape != (size,):
        raise ValueError(f"a mask of shape {keep.shape} for {counted(size, 'topic')}")
    return keep.copy()


class ListingPart:
    """Rows of a listing: ``low`` to ``high``, or only ``pieces`` among them if given; with their hash and size.

    A part does not refer to its listing, so that a listing can remember parts of itself. ``text`` is the pattern
    (without its scheme) that the core itself has applied. ``is_given`` says that the rows came from outside: another
    part may have the same rows, so their hash is remembered by their key. The parts of searches are remembered
    themselves.
    """

    __slots__ = (
        "__weakref__",  # permits are released when the rows are freed
        "_key",
        "_size",
        "fields_size",
        "hash",
        "high",
        "is_checked",
        "is_direct",
        "is_given",
        "low",
        "pieces",
        "text",
    )

    def __init__(self, low: int, high: int, pieces: Pieces | None = None, text: str | None = None) -> None:
        self.low = low
        self.high = high
        self.pieces = pieces
        self.text = text
        self.hash: str | None = None
        self.fields_size: int | None = None
        self.is_given = False
        self.is_checked = False
        self.is_direct = False
        self._size = high - low if pieces is None else sum(len(rows) for _, rows in pieces)
        self._key: RowsKey | None = None

    @classmethod
    def of_pieces(cls, pieces: Pieces, data: ListingData, text: str | None = None) -> ListingPart:
        """A part of pieces of a listing; consecutive rows become a slice."""
        if not pieces:
            return cls(0, 0, text=text)
        (first, begin), (last, end) = pieces[0], pieces[-1]
        low, high = data.start(first) + begin.low, data.start(last) + end.high
        part = cls(low, high, pieces, text)
        if high - low == part._size:
            part.pieces = None
        return part

    @classmethod
    def of_rows(cls, rows: Array, data: ListingData, text: str | None = None) -> ListingPart:
        """A part of ``rows`` (ascending, each once) of a listing; consecutive rows become a slice."""
        return cls.of_pieces(data.pieces_of(rows), data, text)

    @classmethod
    def given_range(cls, low: int, high: int, text: str | None = None) -> ListingPart:
        """A range that a plugin requests."""
        part = cls(low, high, text=text)
        part.is_given = True
        return part

    @classmethod
    def given(cls, rows: Array | Sequence[int], data: ListingData) -> ListingPart:
        """Rows that a plugin gives: copied into read-only memory and checked."""
        own, size = np.asarray(rows), data.size
        if own.ndim != 1 or (len(own) and own.dtype.kind not in "iu"):
            raise ValueError("rows are one column of ascending integers, each once")
        if len(own):
            low, high = int(own.min()), int(own.max()) + 1
            if low < 0 or high > size:
                raise IndexError(f"rows from {low} to {high - 1} of {size}")
        kind = np.int32 if size < 2**31 else np.int64
        own = np.frombuffer(own.astype(kind).tobytes(), kind)
        if len(own) and (int(own[0]) < 0 or int(own[-1]) >= size or bool((own[1:] <= own[:-1]).any())):
            raise ValueError("rows are one column of ascending integers, each once")
        part = cls.of_rows(own, data)
        part.is_given = True
        return part

    def stretch(self, low: int, high: int, data: ListingData) -> ListingPart:
        """The rows at places ``low`` to ``high`` of this part, ``high`` excluded."""
        if self.pieces is None:
            return ListingPart.given_range(self.low + low, self.low + high, self.text)
        made = []
        begin = 0
        for number, rows in self.pieces:
            end = begin + len(rows)
            if begin < high and low < end:
                made.append((number, rows.stretch(max(low - begin, 0), min(high, end) - begin)))
            begin = end
        return ListingPart.of_pieces(tuple(made), data, self.text)

    def masked(self, keep: Array, data: ListingData) -> ListingPart:
        """The rows for which ``keep`` (bool, one a row) is true; costs the chunks one by one."""
        made = []
        begin = 0
        for number, rows in self.pieces_in(data):
            end = begin + len(rows)
            made.append((number, rows.at(np.flatnonzero(keep[begin:end]))))
            begin = end
        return ListingPart.of_pieces(tuple(piece for piece in made if len(piece[1])), data, self.text)

    def at(self, places: Array, data: ListingData) -> ListingPart:
        """The rows at some places (ascending, each once) of this part."""
        pieces = self.pieces_in(data)
        begins = [0, *accumulate(len(rows) for _, rows in pieces)]
        cuts = np.searchsorted(places, begins).tolist()
        made = [
            (number, rows.at(places[first:last] - begin))
            for (number, rows), begin, (first, last) in zip(pieces, begins, pairwise(cuts), strict=False)
            if first < last
        ]
        return ListingPart.of_pieces(tuple(made), data, self.text)

    def pieces_in(self, data: ListingData) -> Pieces:
        """The rows by chunk."""
        return data.pieces(self.low, self.high) if self.pieces is None else self.pieces

    def rows_in(self, data: ListingData) -> Array:
        """The row numbers."""
        if self.pieces is not None:
            return data.rows_of(self.pieces)
        return np.arange(self.low, self.high, dtype=np.int32 if data.size < 2**31 else np.int64)

    def fields_in(self, data: ListingData) -> int:
        """Bytes of the encoded names; computed once."""
        if self.fields_size is None:
            if self.pieces is None:
                self.fields_size = data.fields_size(self.low, self.high)
            else:
                self.fields_size = sum(rows.fields_size(data.chunks[number]) for number, rows in self.pieces)
        return self.fields_size

    def is_whole(self, data: ListingData) -> bool:
        """Whether the part has all rows."""
        return self._size == data.size

    def __len__(self) -> int:
        return self._size

    @property
    def nbytes(self) -> int:
        """Bytes of the row numbers."""
        return 0 if self.pieces is None else sum(rows.nbytes for _, rows in self.pieces)

    def remembered_bytes(self, data: ListingData) -> int:
        """Bytes that remembering the rows takes."""
        if self.pieces is None:
            return 0
        return sum(rows.remembered_bytes(data.chunks[number]) for number, rows in self.pieces)

    def key(self) -> RowsKey:
        """A key for the rows within the listing."""
        if self._key is None:
            self._key = (self.low, self.high) if self.pieces is None else _pieces_key(self.pieces)
        return self._key

    def compute_hash(self, data: ListingData) -> str:
        """The topics hash, which is not known yet."""
        if self.pieces is None:
            return data.range_hash(self.low, self.high, remember=self.is_given)
        if self.is_given:
            key = self.key()
            assert isinstance(key, bytes)
            return data.rows_hash(key, self.pieces)
        return data.hash(self.pieces)

    def bytes_to_hash(self, data: ListingData) -> int:
        """About how many bytes of names :meth:`compute_hash` reads."""
        if self.pieces is not None:
            return sum(
                0 if rows.known_text is not None else rows.fields_size(data.chunks[number])
                for number, rows in self.pieces
            )
        if self.low >= self.high or (self.is_whole(data) and data.is_nearly_hashed):
            return 0
        first, last = data.chunk_at(self.low), data.chunk_at(self.high - 1)
        total = 0
        for number in range(first, last + 1):
            chunk = data.chunks[number]
            start = data.start(number)
            total += chunk.bytes_to_hash(max(self.low - start, 0), min(self.high - start, chunk.size))
        return total

    def remembered_hash(self, data: ListingData) -> str | None:
        """The hash, if it is known already."""
        if self.pieces is None:
            return data.known_range_hash(self.low, self.high)
        known: str | None = data.memo.get(((Remembered.HASH, self.key()), None)) if self.is_given else None
        return known

    def batches(self, data: ListingData, columns: tuple[str, ...], most: int) -> Iterator[pa.RecordBatch]:
        """The topics, at most ``most`` at a time: see :meth:`~.listing.Selection.batches`."""
        unknown = set(columns) - {"name", "field", "matched"}
        if unknown or not columns:
            raise ValueError(
                f"columns are name, field and matched, not {', '.join(map(repr, columns)) or 'none'}"
            )
        if (most := index(most)) < 1:
            raise ValueError(f"rows must be at least 1, not {most}")
        for low in range(0, len(self), most):
            pieces = self.stretch(low, min(low + most, len(self)), data).pieces_in(data)
            names = data.names(pieces) if set(columns) != {"field"} else None
            made: dict[str, Any] = {"name": names}
            if "field" in columns:
                made["field"] = data.column(pieces)
            if "matched" in columns:
                made["matched"] = matched_forms(names, data.namespace)
            yield pa.record_batch([made[column] for column in columns], names=list(columns))


def _pieces_key(pieces: Pieces) -> bytes:
    digest = blake2b(digest_size=16)
    for number, rows in pieces:
        digest.update(struct.pack("<4q", number, rows.low, rows.high, len(rows)))
        if rows.rows is not None:
            digest.update(rows.rows.data)
    return digest.digest()
