"""Search of a selection for the topics that match a pattern, at once or in slices for threads."""

from __future__ import annotations

from collections.abc import Callable

from broker_core.listing.listing import Selection, data_of, part_of, selection_of
from broker_core.listing.search.pattern_matches import MatchSearch, find_matches, matches_are_quick
from broker_core.patterns import TopicsPattern

__all__ = ["Matching", "search_is_quick", "search_selection"]


def search_is_quick(selection: Selection, pattern: TopicsPattern) -> bool:
    """Whether :func:`search_selection` takes about a millisecond at most."""
    return matches_are_quick(data_of(selection.listing), part_of(selection), pattern)


def search_selection(selection: Selection, pattern: TopicsPattern) -> Selection:
    """The result of :meth:`Selection.matching`, for a pattern whose result is not known yet."""
    listing = selection.listing
    return selection_of(listing, find_matches(data_of(listing), part_of(selection), pattern))


class Matching:
    """The search for the topics of a selection that match a pattern, in slices for threads.

    :meth:`result` is that of :meth:`Selection.matching`; all else is as in
    :class:`~broker_core.listing.search.pattern_matches.MatchSearch`.
    """

    __slots__ = ("_listing", "_search", "take")

    def __init__(self, searched: Selection, pattern: TopicsPattern) -> None:
        self._listing = searched.listing
        self._search = MatchSearch(data_of(self._listing), part_of(searched), pattern)
        self.take: Callable[[], Callable[[], None] | None] = self._search.take

    @property
    def cost(self) -> int:
        return self._search.cost

    @property
    def same(self) -> tuple[int, str] | None:
        return self._search.same

    def result(self) -> Selection:
        return selection_of(self._listing, self._search.result())
