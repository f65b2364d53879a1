"""Which chunks of a listing a pattern's ranges are in, and where in their forms."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import TYPE_CHECKING

from broker_core.patterns import TopicsPattern

if TYPE_CHECKING:
    from broker_core.listing.chunk import Chunk
    from broker_core.listing.listing_data import ListingData

__all__ = ["candidates", "is_whole_range", "ranges_in"]


def is_whole_range(chunk: Chunk, pattern: TopicsPattern) -> bool:
    """Whether all names of the chunk in the one range of the pattern match, so that none has to be looked at."""
    return pattern.match_all or pattern.literal is not None or (pattern.exact_range and not chunk.has_newline)


def ranges_in(chunk: Chunk, pattern: TopicsPattern) -> list[tuple[int, int]]:
    """Positions of the chunk's forms, ``[low, high)``, outside of which nothing matches."""
    if not pattern.ranges:
        return [(0, chunk.size)]
    found = [chunk.forms.range(low, high) for low, high in pattern.ranges]
    return [(low, high) for low, high in found if low < high]


def candidates(listing: ListingData, pattern: TopicsPattern, *, make: bool = False) -> Sequence[int] | None:
    """The numbers of the chunks that may have a name in the pattern's ranges, ascending.

    ``None`` where forms have to be made to know that; ``make`` makes them.
    """
    chunks = listing.chunks
    if not pattern.ranges or len(chunks) == 1:
        return range(len(chunks))
    if not make and not listing.forms_are_made:
        return None
    firsts, lasts = listing.form_edges
    found: set[int] = set()
    for low, high in pattern.ranges:
        # Of each chunk in front of `begin` all forms are smaller, of each from `end` on none is.
        begin, end = bisect_left(lasts, low), bisect_left(firsts, high)
        for number in range(begin, end):
            least, most = chunks[number].form_bounds
            if least < high and low <= most:
                found.add(number)
    return sorted(found)
