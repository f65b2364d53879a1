"""Rendered bytes as pieces for a socket: none of them tiny, none much larger than half a mebibyte.

Their reader may change the size of blocks between two pieces. Record batches are such pieces of an Arrow IPC stream:
the schema, each batch, the end.

https://arrow.apache.org/docs/format/Columnar.html#ipc-streaming-format
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import pyarrow as pa

from broker_core.names import column_data

__all__ = ["BLOCK", "USUAL_SIZE", "BlockSize", "arrow_stream", "joined_pieces", "separated"]


#: Bytes of the names of a block, about, and the most that a piece has as a rule.
BLOCK: Final = 512 * 1024


class BlockSize:
    """The size of the next block, ``bytes``: less for a reader that is slow, for which pieces wait in memory."""

    __slots__ = ("bytes",)

    def __init__(self, size: int = BLOCK) -> None:
        self.bytes = size


#: The block size for readers that do not change it.
USUAL_SIZE: Final = BlockSize()


#: Pieces of less than this part of a block are joined, at most ``_MOST`` at once: each may have taken some 50
#: microseconds.
_SMALL: Final = 4
_MOST: Final = 32


def separated(
    columns: Iterable[pa.LargeBinaryArray[Any]], first: int, end: bytes, block: BlockSize
) -> Iterator[bytes | memoryview]:
    """The values of columns one after the other, each of which begins with the separator from the one before.

    The first ``first`` bytes are left out, and ``end`` follows the last value; of no values there is nothing.
    """
    return joined_pieces(_separated(columns, first, end), block)


def _separated(
    columns: Iterable[pa.LargeBinaryArray[Any]], first: int, end: bytes
) -> Iterator[bytes | memoryview]:
    is_first = True
    for column in columns:
        data, offsets = column_data(column)
        begin = offsets.item(0) + (first if is_first else 0)
        yield memoryview(data)[begin : offsets.item(-1)]
        is_first = False
    if not is_first:
        yield end


def joined_pieces(pieces: Iterable[bytes | memoryview], block: BlockSize) -> Iterator[bytes | memoryview]:
    """The bytes of the pieces, small ones put together."""
    few: list[bytes | memoryview] = []
    size = 0
    for piece in pieces:
        if few and (size + len(piece) > block.bytes or len(few) == _MOST):
            yield _joined(few)
            few, size = [], 0
        if _SMALL * len(piece) >= block.bytes and not few:
            yield piece
        else:
            few.append(piece)
            size += len(piece)
    if few:
        yield _joined(few)


def _joined(pieces: list[bytes | memoryview]) -> bytes | memoryview:
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


#: The mark of a message, and no bytes of it.
_END: Final = b"\xff\xff\xff\xff\x00\x00\x00\x00"


def arrow_stream(
    schema: pa.Schema, batches: Iterable[pa.RecordBatch], size: BlockSize
) -> Iterator[bytes | memoryview]:
    """The stream of batches of one schema without dictionaries; a reader that misses its end knows that it was cut."""
    return joined_pieces(_messages(schema, batches), size)


def _messages(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[bytes | memoryview]:
    yield memoryview(schema.serialize())
    for batch in batches:
        yield memoryview(batch.serialize())
    yield _END
