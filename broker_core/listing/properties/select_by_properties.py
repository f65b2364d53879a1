"""The topics of a listing that have some properties: searched chunk by chunk, and remembered by each chunk.

The rows that a chunk remembers serve all versions of a listing that share it, so after a change only new chunks are
searched.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from broker_core.listing.chunks.chunk import Chunk
from broker_core.listing.chunks.chunk_rows import ChunkRows
from broker_core.listing.chunks.memo_key import MemoKey, properties_key
from broker_core.listing.listing_data import ListingData
from broker_core.listing.listing_part import ListingPart

__all__ = ["is_quick_to_select", "remembered_selection", "select_by_properties"]

#: So many rows are searched in well under a millisecond; a chunk that remembers costs as much as a few of them.
_QUICK: Final = 50_000
_REMEMBERED: Final = 64
#: Bytes of a piece of a part.
_PIECE: Final = 128


def remembered_selection(data: ListingData, pairs: Mapping[str, str]) -> ListingPart | None:
    """The earlier result of :func:`select_by_properties`, if the listing remembers it."""
    found: ListingPart | None = (
        data.memo.get((properties_key(pairs), None)) if pairs else ListingPart(0, data.size)
    )
    return found


def is_quick_to_select(data: ListingData, pairs: Mapping[str, str]) -> bool:
    """Whether :func:`select_by_properties` takes well under a millisecond."""
    if data.size <= _QUICK:
        return True
    key = properties_key(pairs)
    cost = _REMEMBERED * len(data.chunks)
    for chunk in data.chunks:
        if cost > _QUICK:
            return False
        cost += 0 if chunk.memo_has(key) else chunk.size
    return cost <= _QUICK


def select_by_properties(data: ListingData, pairs: Mapping[str, str]) -> ListingPart:
    """The topics whose properties have the values in ``pairs``. For any thread."""
    known = remembered_selection(data, pairs)
    if known is not None:
        return known
    key = properties_key(pairs)
    is_shared = len(data.chunks) > 1
    size = text = sum(4 * len(word) + _PIECE for pair in pairs.items() for word in pair)
    pieces = []
    for number, chunk in enumerate(data.chunks):
        rows = _rows(chunk, pairs, key, text) if is_shared else chunk.with_values(pairs)
        if len(rows):
            pieces.append((number, rows))
            size += _PIECE + (0 if is_shared and chunk.memo_has(key) else rows.remembered_bytes(chunk))
    first: ListingPart = data.memo.put_first((key, None), ListingPart.of_pieces(tuple(pieces), data), size)
    return first


def _rows(chunk: Chunk, pairs: Mapping[str, str], key: MemoKey, text: int) -> ChunkRows:
    known: ChunkRows | None = chunk.memo.get(key)
    if known is None:
        found = chunk.with_values(pairs)
        known = chunk.memo.put_first(key, found, found.remembered_bytes(chunk) + text)
    return known
