"""Whether any topic of a listing has a value of a selecting property."""

from __future__ import annotations

from broker_core.listing.listing import Listing, data_of

__all__ = ["has_property_values"]


def has_property_values(listing: Listing) -> bool:
    """Whether a listing's topics can be selected by properties: some topic has a value of one."""
    return any(
        len(codes.values) > 0 and bool((codes.codes >= 0).any())
        for chunk in data_of(listing).chunks
        for codes in chunk.properties.values()
    )
