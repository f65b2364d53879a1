"""The rows of a listing that match a pattern: searched in slices for threads, and cached with the listing."""

from __future__ import annotations

from collections.abc import Callable

from broker_core.listing.listing_data import ListingData
from broker_core.listing.listing_part import ListingPart
from broker_core.listing.search.chunk_ranges import whole_ranges
from broker_core.listing.search.pattern_scan import PatternScan, quick_to_match
from broker_core.patterns import TopicsPattern, real_pattern

__all__ = ["MatchSearch", "find_matches", "matches_are_quick"]


def _within(data: ListingData, part: ListingPart) -> ListingPart | None:
    """The part that a search is restricted to; ``None`` to search the whole listing, by columns made for that."""
    return None if part.is_whole(data) and not part.is_direct else part


def matches_are_quick(data: ListingData, part: ListingPart, pattern: TopicsPattern) -> bool:
    """Whether :func:`find_matches` takes about a millisecond at most."""
    return quick_to_match(data, pattern, _within(data, part))


def find_matches(data: ListingData, part: ListingPart, pattern: TopicsPattern) -> ListingPart:
    """The rows of a part that match ``pattern``. Raises :exc:`TypeError` for anything but a compiled pattern."""
    if _within(data, part) is None and data.is_believed:
        pieces = whole_ranges(data, real_pattern(pattern))
        if pieces is not None:
            return _remembered(data, part, pattern.text, ListingPart.of_pieces(pieces, data, pattern.text))
    searching = MatchSearch(data, part, pattern)
    while (work := searching.take()) is not None:
        work()
    return searching.result()


def _remembered(data: ListingData, part: ListingPart, text: str, found: ListingPart) -> ListingPart:
    """The found part, remembered by the listing; equal searches share the first one."""
    is_whole = part.is_whole(data)
    size = 128 * len(found.pieces or ())
    if len(data.chunks) == 1 or not is_whole:  # else the chunks remember them
        size += found.remembered_bytes(data)
    key = None if is_whole else part.key()
    first: ListingPart = data.memo.put_first((text, key), found, size + 4 * len(text))
    return first


class MatchSearch:
    """The search for the rows of a part of a listing that match a pattern, in slices for threads.

    :meth:`take` and :attr:`cost` are as in :class:`~broker_core.listing.search.pattern_scan.PatternScan`.
    """

    __slots__ = ("_data", "_part", "_scan", "pattern")

    def __init__(self, data: ListingData, part: ListingPart, pattern: TopicsPattern) -> None:
        self._data = data
        self._part = part
        self.pattern = real_pattern(pattern)
        self._scan = PatternScan(data, pattern, _within(data, part))

    @property
    def cost(self) -> int:
        cost: int = self._scan.cost
        return cost

    @property
    def same(self) -> tuple[int, str] | None:
        """A key that equal searches share; ``None`` if the search cannot be shared."""
        return (id(self._data), self.pattern.text) if self._part.is_whole(self._data) else None

    def take(self) -> Callable[[], None] | None:
        return self._scan.take()

    def result(self) -> ListingPart:
        """The matching rows; equal searches share the first result."""
        data, part, text = self._data, self._part, self.pattern.text
        found = ListingPart.of_pieces(self._scan.result(), data, text)
        if len(found) == len(part) and part.pieces is not None:
            # All rows match: the result shares the rows and their key with the part.
            found.pieces, found.hash, found.fields_size = part.pieces, part.hash, part.fields_size
            found.is_given = part.is_given
        return _remembered(data, part, text, found)
