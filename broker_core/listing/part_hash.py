"""The topics hash of a part of a listing: computed once, and remembered where others may ask for it."""

from __future__ import annotations

from broker_core.listing.listing_data import ListingData
from broker_core.listing.listing_part import Part

__all__ = ["compute_hash", "remembered_hash"]


def compute_hash(data: ListingData, part: Part) -> str:
    """The topics hash of a part that has none yet."""
    if part.rows is None:
        return data.range_hash(part.low, part.high, remember=part.is_given)
    if part.is_given:
        assert isinstance(part.key, bytes)
        return data.rows_hash(part.key, part.low, part.high, part.rows)
    return data.hash(part.low, part.high, part.rows)


def remembered_hash(data: ListingData, part: Part) -> str | None:
    """The same where it takes no computing."""
    if part.rows is None:
        return data.known_range_hash(part.low, part.high)
    known: str | None = data.memo.get(("\0hash", part.key)) if part.is_given else None
    return known
