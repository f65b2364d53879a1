"""The body of an answer, a piece at a time: a shared listing is not copied, gathered rows are never all in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeAlias

import numpy as np

from broker_core.listing.chunks.chunk import Chunk
from broker_core.listing.chunks.chunk_rows import ChunkRows
from broker_core.listing.fields.fields_codec import gathered
from broker_core.names import Array

__all__ = ["GATHERED", "FieldsReader"]

_Buffer: TypeAlias = bytes | bytearray | memoryview

#: About as many bytes are gathered at a time. Some 100 microseconds, so that it may be done on the event loop; of half
#: as many, gathering all would take a third longer.
GATHERED: Final = 256 * 1024
#: Chunks whose rows are gathered at a time: each costs some 10 microseconds.
_CHUNKS: Final = 32
#: A stretch of at most so many bytes is copied to its neighbours, rather than sent by itself.
_FEW: Final = 4 * 1024
#: Bytes from which on a piece is not copied, and the smaller ones that are put together at the most.
_LARGE: Final = 16 * 1024
_MOST: Final = 64
_NOTHING: Final = memoryview(b"")


class FieldsReader:
    """Encoded fields, in order, block after block. ``left`` is how many bytes are still to :meth:`read`."""

    __slots__ = ("_block", "_blocks", "left")

    def __init__(self, blocks: Iterator[memoryview], size: int) -> None:
        """A reader of blocks that have ``size`` bytes together."""
        self._block = _NOTHING
        self._blocks = blocks
        self.left = size

    @classmethod
    def of(cls, data: bytes | memoryview) -> FieldsReader:
        """A reader of bytes in memory."""
        return cls(iter((memoryview(data),)), len(data))

    @classmethod
    def of_pieces(cls, pieces: Sequence[_Buffer]) -> FieldsReader:
        """A reader of pieces in memory; large ones are not copied, small neighbours are joined as they are read."""
        return cls(_joined(pieces), sum(map(len, pieces)))

    @classmethod
    def of_rows(cls, pieces: Iterable[tuple[Chunk, ChunkRows]], size: int) -> FieldsReader:
        """A reader of rows of chunks that have ``size`` bytes together."""
        return cls(_blocks(pieces), size)

    def read(self, most: int) -> memoryview:
        """The next bytes, at most ``most`` of them; none if nothing is left."""
        while not len(self._block) and self.left:
            self._block = _NOTHING  # one block is in memory, not the next one beside it
            self._block = next(self._blocks)
        piece, self._block = self._block[:most], self._block[most:]
        self.left -= len(piece)
        return piece

    def read_all(self) -> memoryview:
        """All that is left, as one buffer."""
        size = self.left
        piece = self.read(size)
        if not self.left:
            return piece
        # With so much memory most time goes into its first use, and numpy gets large pages of the system.
        whole = np.empty(size, np.uint8)
        filled = 0
        while len(piece):
            whole[filled : filled + len(piece)] = np.frombuffer(piece, np.uint8)
            filled += len(piece)
            del piece
            piece = self.read(self.left)
        return whole.data


def _joined(pieces: Sequence[_Buffer]) -> Iterator[memoryview]:
    few: list[_Buffer] = []
    for piece in pieces:
        if len(piece) < _LARGE:
            few.append(piece)
            if len(few) < _MOST:
                continue
        if few:
            yield _taken(few)
        if len(piece) >= _LARGE:
            yield memoryview(piece)
    if few:
        yield _taken(few)


def _blocks(pieces: Iterable[tuple[Chunk, ChunkRows]]) -> Iterator[memoryview]:
    few: list[_Buffer] = []  # of one chunk each, put together
    size = 0
    for chunk, rows in pieces:
        own = rows.fields_size(chunk)
        if few and (size + own > GATHERED or len(few) == _CHUNKS):
            yield _taken(few)
            size = 0
        if own <= _FEW or (rows.rows is not None and own <= GATHERED):
            few.append(rows.body(chunk))
            size += own
            continue
        if few:
            yield _taken(few)
            size = 0
        if rows.rows is None:
            yield chunk.body(rows.low, rows.high)
        else:
            yield from _gathered_blocks(chunk, rows.rows, own)
    if few:
        yield _taken(few)


def _taken(few: list[_Buffer]) -> memoryview:
    """The contents of the list as one block; the list is emptied, so that it holds nothing while the block is sent."""
    whole = memoryview(few[0]) if len(few) == 1 else memoryview(b"".join(few))
    few.clear()
    return whole


def _gathered_blocks(chunk: Chunk, rows: Array, size: int) -> Iterator[memoryview]:
    """The ``size`` bytes of some rows in blocks of as many rows each; a chunk's size bounds a block of long names."""
    fields, offsets = chunk.fields, chunk.field_offsets
    count = -(-len(rows) // -(-size // GATHERED))
    for first in range(0, len(rows), count):
        yield memoryview(gathered(fields, offsets, rows[first : first + count])[0])
