"""Some rows of one chunk, as a search or a selection found them, with their size and hash.

They have no reference to their chunk, so that the chunk can remember them for all versions of a listing that share it.

Listings and chunks remember results by keys. The key of a pattern's rows is its text, which clients choose. So every
other key has a :class:`Remembered` in it, which no text is equal to.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from enum import Enum, auto
from typing import Final, Protocol, TypeAlias

import numpy as np
import pyarrow as pa

from broker_core.listing.fields.fields_codec import gathered, joined_fields
from broker_core.listing.listing_hash import TextCrc
from broker_core.names import Array

__all__ = ["FEW_ROWS", "ChunkRows", "MemoKey", "Remembered", "properties_key"]


class Remembered(Enum):
    """Kinds of remembered results, besides the rows of patterns."""

    PROPERTIES = auto()
    HASH = auto()
    CHECKED = auto()
    PLACES = auto()
    SPLICED = auto()
    FILTERED = auto()


#: The text of a pattern, or the kind of a result and what it belongs to.
MemoKey: TypeAlias = "str | tuple[Remembered, Hashable]"


def properties_key(pairs: Mapping[str, str]) -> tuple[Remembered, Hashable]:
    """The key of the rows that have the given properties."""
    return Remembered.PROPERTIES, frozenset(pairs.items())


#: Bytes of gathered fields that are kept with the rows: an answer may have a few rows of each of many chunks.
_KEPT: Final = 4096
#: Rows that are gathered one by one: for more, Arrow is quicker.
FEW_ROWS: Final = 64


class _Chunk(Protocol):
    """The members of a chunk that its rows need."""

    @property
    def field_offsets(self) -> Array: ...

    @property
    def fields(self) -> pa.Buffer: ...

    def body(self, low: int, high: int) -> memoryview: ...

    def text_crc(self, low: int, high: int, rows: Array | None = None) -> TextCrc: ...


def _read_only(rows: Array) -> Array:
    """A read-only copy or view of numbers, no attribute of which leads to writable memory: it is handed out."""
    if not rows.flags.writeable and not isinstance(rows.base, np.ndarray):
        return rows
    return np.frombuffer(pa.py_buffer(np.ascontiguousarray(rows).data.toreadonly()), rows.dtype)


class ChunkRows:
    """Rows ``low`` to ``high`` of a chunk, or only ``rows`` (ascending, int32) among them if given."""

    __slots__ = ("_body", "_fields_size", "high", "known_text", "low", "rows")

    def __init__(self, low: int, high: int, rows: Array | None = None) -> None:
        self.low = low
        self.high = high
        self.rows = None if rows is None else _read_only(rows)
        self._body: bytes | None = None
        self._fields_size: int | None = None
        self.known_text: TextCrc | None = None

    @classmethod
    def of(cls, rows: Array) -> ChunkRows:
        """Rows by their ascending numbers; consecutive ones become a range."""
        if not len(rows):
            return cls(0, 0)
        low, high = int(rows[0]), int(rows[-1]) + 1
        if high - low == len(rows):
            return cls(low, high)
        return cls(low, high, rows.astype(np.int32, copy=False))

    def know(self, body: bytes, text: TextCrc) -> None:
        """Take the encoded fields and the CRC that were at hand when the rows were found."""
        self._fields_size = len(body)
        self.known_text = text
        if self.rows is not None and len(body) <= _KEPT:
            self._body = body

    def __len__(self) -> int:
        return self.high - self.low if self.rows is None else len(self.rows)

    @property
    def array(self) -> Array:
        """The row numbers."""
        return np.arange(self.low, self.high, dtype=np.int32) if self.rows is None else self.rows

    @property
    def nbytes(self) -> int:
        """Bytes of the row numbers."""
        return 0 if self.rows is None else int(self.rows.nbytes)

    def stretch(self, low: int, high: int) -> ChunkRows:
        """The rows at places ``low`` to ``high`` among these rows, ``high`` excluded."""
        if self.rows is None:
            return ChunkRows(self.low + low, self.low + high)
        return self if high - low == len(self.rows) else ChunkRows.of(self.rows[low:high])

    def at(self, places: Array) -> ChunkRows:
        """The rows at some places (ascending, each once) among these rows."""
        if len(places) == len(self):
            return self
        return ChunkRows.of(places + self.low if self.rows is None else self.rows[places])

    def fields_size(self, chunk: _Chunk) -> int:
        """Bytes of the encoded fields."""
        if self._fields_size is None:
            offsets = chunk.field_offsets
            if self.rows is None:
                self._fields_size = int(offsets[self.high]) - int(offsets[self.low])
            else:
                self._fields_size = int((offsets[1:][self.rows] - offsets[:-1][self.rows]).sum())
        return self._fields_size

    def body(self, chunk: _Chunk) -> bytes | memoryview:
        """The encoded fields: a view of a range; gathered otherwise, once if they are few."""
        if self.rows is None:
            return chunk.body(self.low, self.high)
        if self._body is not None:
            return self._body
        found: bytes | memoryview
        if len(self.rows) <= FEW_ROWS:
            found = joined_fields(chunk.fields, chunk.field_offsets, self.rows)[0]
        else:
            found = memoryview(gathered(chunk.fields, chunk.field_offsets, self.rows)[0])
        if len(found) <= _KEPT:
            found = self._body = bytes(found)
        return found

    def remembered_bytes(self, chunk: _Chunk) -> int:
        """Bytes that remembering the rows takes: their numbers, and the fields if they are few."""
        size = self.fields_size(chunk)
        return 0 if self.rows is None else self.nbytes + (size if size <= _KEPT else 0)

    def text(self, chunk: _Chunk) -> TextCrc:
        """The CRC of the names; computed once."""
        if self.known_text is None:
            self.known_text = chunk.text_crc(self.low, self.high, self.rows)
        return self.known_text
