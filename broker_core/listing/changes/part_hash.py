"""The topics hash of a part of a listing: computed once, and remembered if others may need it."""

from __future__ import annotations

from broker_core.listing.chunks.memo_key import Remembered
from broker_core.listing.listing_data import ListingData
from broker_core.listing.listing_part import ListingPart

__all__ = ["bytes_to_hash", "compute_hash", "remembered_hash"]


def compute_hash(data: ListingData, part: ListingPart) -> str:
    """The topics hash of a part that is not hashed yet."""
    if part.pieces is None:
        return data.range_hash(part.low, part.high, remember=part.is_given)
    if part.is_given:
        key = part.key()
        assert isinstance(key, bytes)
        return data.rows_hash(key, part.pieces)
    return data.hash(part.pieces)


def bytes_to_hash(data: ListingData, part: ListingPart) -> int:
    """About how many bytes of names :func:`compute_hash` reads."""
    if part.pieces is not None:
        return sum(
            0 if rows.is_hashed else rows.fields_size(data.chunks[number]) for number, rows in part.pieces
        )
    if part.low >= part.high or (part.is_whole(data) and data.is_nearly_hashed):
        return 0
    first, last = data.chunk_at(part.low), data.chunk_at(part.high - 1)
    total = 0
    for number in range(first, last + 1):
        chunk = data.chunks[number]
        start = data.start(number)
        total += chunk.bytes_to_hash(max(part.low - start, 0), min(part.high - start, chunk.size))
    return total


def remembered_hash(data: ListingData, part: ListingPart) -> str | None:
    """The hash of a part, if it is known already."""
    if part.pieces is None:
        return data.known_range_hash(part.low, part.high)
    known: str | None = data.memo.get(((Remembered.HASH, part.key()), None)) if part.is_given else None
    return known
