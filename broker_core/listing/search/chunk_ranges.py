"""The chunks of a listing, and the positions in their forms, that a pattern's ranges cover."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import TYPE_CHECKING

from broker_core.listing.chunks.chunk_rows import ChunkRows
from broker_core.patterns import TopicsPattern

if TYPE_CHECKING:
    from broker_core.listing.chunks.chunk import Chunk
    from broker_core.listing.listing_data import ListingData, Pieces

__all__ = ["candidates", "is_whole_range", "ranges_in", "whole_ranges"]


def is_whole_range(chunk: Chunk, pattern: TopicsPattern) -> bool:
    """Whether all names of the chunk in the pattern's one range match, so that none has to be read."""
    return pattern.match_all or pattern.literal is not None or (pattern.exact_range and not chunk.has_newline)


def ranges_in(chunk: Chunk, pattern: TopicsPattern) -> list[tuple[int, int]]:
    """Positions of the chunk's forms, ``[low, high)``, outside of which nothing matches."""
    if not pattern.ranges:
        return [(0, chunk.size)]
    found = [chunk.form_range(low, high) for low, high in pattern.ranges]
    return [(low, high) for low, high in found if low < high]


def whole_ranges(listing: ListingData, pattern: TopicsPattern) -> Pieces | None:
    """The rows that match a pattern whose ranges match as a whole, if looking up the ranges is all it takes.

    ``None`` if forms have to be made, or names to be matched.
    """
    if not (pattern.match_all or pattern.literal is not None or pattern.exact_range):
        return None
    numbers = candidates(listing, pattern)
    if numbers is None:
        return None
    found: list[tuple[int, ChunkRows]] = []
    for number in numbers:
        chunk = listing.chunks[number]
        if not chunk.is_searchable or not chunk.forms.is_identity or not is_whole_range(chunk, pattern):
            return None
        rows = chunk.rows_of_range(*pattern.ranges[0]) if pattern.ranges else ChunkRows(0, chunk.size)
        if len(rows):
            found.append((number, rows))
    return tuple(found)


def candidates(listing: ListingData, pattern: TopicsPattern, *, make: bool = False) -> Sequence[int] | None:
    """The numbers of the chunks that may have a name in the pattern's ranges, ascending.

    ``None`` if forms have to be made first; ``make`` makes them.
    """
    chunks = listing.chunks
    if not pattern.ranges or len(chunks) == 1:
        return range(len(chunks))
    if not make and not listing.forms_are_made:
        return None
    firsts, lasts = listing.form_edges
    found: set[int] = set()
    for low, high in pattern.ranges:
        # All forms of each chunk before `begin` are smaller, none of a chunk from `end` on is.
        begin, end = bisect_left(lasts, low), bisect_left(firsts, high)
        for number in range(begin, end):
            least, most = chunks[number].form_bounds
            if least < high and low <= most:
                found.add(number)
    return sorted(found)
