"""Rendered bytes as pieces for a socket: none of them tiny, none much larger than half a mebibyte."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import pyarrow as pa

from broker_core.listing.rendered.block_size import BlockSize
from broker_core.names import column_data

__all__ = ["joined_pieces", "separated"]

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
