"""The names of an answer, a block at a time, from fields of shared chunks, gathered rows, or a column."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker_core.listing.chunks.chunk import Chunk
from broker_core.listing.chunks.json_escapes import escaped, needs_escapes
from broker_core.listing.fields.fields_codec import alike_start, decode_fields
from broker_core.listing.listing import Selection, data_of, part_of
from broker_core.listing.rendered.pieces import BlockSize
from broker_core.names import Array, column_data, contains

__all__ = ["NameBlock", "RenderedNames", "has_line_feed", "name_blocks"]

#: Names to render: a selection, in the order of the hash; or full names in any other order, such as that of pages.
RenderedNames: TypeAlias = "Selection | pa.LargeStringArray"

#: Rows whose sizes are summed at a time to find the end of a block.
_ROWS: Final = 16 * 1024
#: If a block has at least one in so many of a chunk's names, all names of the chunk are examined, once.
_MANY: Final = 8


class NameBlock:
    """Some names, each after ``head`` bytes that are not shown. ``chunk``, if given, may know more of them."""

    __slots__ = ("_chunk", "_column", "_head")

    def __init__(self, column: pa.LargeBinaryArray, head: int, chunk: Chunk | None = None) -> None:
        self._column = column
        self._head = head
        self._chunk = chunk

    @classmethod
    def of_fields(cls, fields: pa.LargeBinaryArray, chunk: Chunk | None = None) -> NameBlock:
        """A block of encoded names, which are checked; at least one."""
        head = None if chunk is None else chunk.head
        if head is None:
            head = alike_start(np.diff(column_data(fields)[1]))
        if head is not None:  # as a rule
            return cls(fields, head, chunk)
        return cls(decode_fields(fields, comma=True), 1, chunk)

    def __len__(self) -> int:
        return len(self._column)

    def with_separator(self, separator: bytes) -> pa.LargeBinaryArray:
        """Each name after ``separator``, in new memory: one pass, at some 6 GB/s."""
        return pc.binary_replace_slice(self._column, 0, self._head, separator)

    def separated_in_json(self, separator: bytes) -> pa.LargeBinaryArray:
        """Each name after ``separator``, as it stands within the quotes of JSON."""
        if self._needs_escapes():
            return pc.binary_replace_slice(escaped(self.with_separator(b"")), 0, 0, separator)
        return self.with_separator(separator)

    def _needs_escapes(self) -> bool:
        if self._chunk is not None and self._chunk.is_json_text:
            return False
        return needs_escapes(self.with_separator(b"") if self._head else self._column)


def name_blocks(names: RenderedNames, size: BlockSize) -> Iterator[NameBlock]:
    """All names in order, about ``size`` at a time; fewer at the end of a chunk.

    Raises :exc:`~broker_core.errors.InvalidListing` if names that were encoded elsewhere are invalid.
    """
    if not isinstance(names, Selection):
        column = names.cast(pa.large_binary())
        for low, high in _stretches(column_data(column)[1], 0, len(column), size):
            yield NameBlock(column[low:high], 0)
        return
    data = data_of(names.listing)
    for number, rows in part_of(names).pieces_in(data):
        chunk = data.chunks[number]
        known = chunk if _MANY * len(rows) >= chunk.size and chunk.is_believed else None
        if rows.rows is None:
            for low, high in _stretches(chunk.field_offsets, rows.low, rows.high, size):
                yield NameBlock.of_fields(chunk.column(low, high), known)
        else:
            for some in _some_rows(chunk, rows.rows, size):
                yield NameBlock.of_fields(chunk.column(int(some[0]), int(some[-1]) + 1, some), known)


def has_line_feed(names: RenderedNames) -> bool:
    """Whether a name has a line feed, so that names cannot be rendered as lines of text.

    A chunk of a listing remembers it.
    """
    if not isinstance(names, Selection):
        return contains(names, "\n")
    data = data_of(names.listing)
    for number, rows in part_of(names).pieces_in(data):
        chunk = data.chunks[number]
        # In a chunk that is not checked yet only these names are read: others may be invalid.
        if (not chunk.is_believed or chunk.has_newline) and contains(data.names(((number, rows),)), "\n"):
            return True
    return False


def _stretches(offsets: Array, low: int, high: int, size: BlockSize) -> Iterator[tuple[int, int]]:
    """Rows from ``low`` to ``high``, as stretches that are no larger than a block, or one row."""
    while low < high:
        end = min(int(np.searchsorted(offsets, offsets[low] + size.bytes, side="right")) - 1, high)
        end = max(end, low + 1)
        yield low, end
        low = end


def _some_rows(chunk: Chunk, rows: Array, size: BlockSize) -> Iterator[Array]:
    first = 0
    while first < len(rows):
        some = rows[first : first + _ROWS]
        ends = np.cumsum(chunk.field_offsets[1:][some] - chunk.field_offsets[:-1][some])
        count = max(1, int(np.searchsorted(ends, size.bytes, side="right")))
        yield some[:count]
        first += count
