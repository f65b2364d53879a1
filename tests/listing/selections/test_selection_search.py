"""Searches of selections."""

from __future__ import annotations

from broker_core.listing.selections.selection_search import matching_scan
from broker_core.patterns import compile_pattern
from tests.support.topics import assert_selection, listing_of, persistent


def test_a_search_in_slices_gives_what_a_search_at_once_gives() -> None:
    listing = listing_of(persistent("a", "b", "c"))
    some, pattern = listing.rows([0, 1]), compile_pattern("t/n/[bc]")
    scan = matching_scan(some, pattern)
    assert (scan.same, scan.cost) == (None, 0)
    while (work := scan.take()) is not None:
        work()
    assert_selection(scan.result(), persistent("b"))
    assert scan.result().listing is listing
    assert_selection(some.matching(pattern), persistent("b"))
    assert matching_scan(listing.all(), pattern).same is not None
