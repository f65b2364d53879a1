"""Search of a selection for the topics that match a pattern, in slices for threads."""

from __future__ import annotations

from functools import partial

from broker_core.listing.listing import Selection, data_of, part_of, selection_of
from broker_core.listing.search.pattern_scan import PatternScan
from broker_core.patterns import TopicsPattern

__all__ = ["matching_scan"]


def matching_scan(searched: Selection, pattern: TopicsPattern) -> PatternScan[Selection]:
    """The search whose result is that of :meth:`Selection.matching`."""
    listing = searched.listing
    return PatternScan(data_of(listing), part_of(searched), pattern, partial(selection_of, listing))
