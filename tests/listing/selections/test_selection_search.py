"""Searches of selections."""

from __future__ import annotations

from broker_core.listing.selections.selection_search import Matching, search_is_quick, search_selection
from broker_core.patterns import compile_pattern
from tests.support.topics import assert_selection, listing_of, persistent


def test_a_search_in_slices_gives_what_a_search_at_once_gives() -> None:
    listing = listing_of(persistent("a", "b", "c"))
    some, pattern = listing.rows([0, 1]), compile_pattern("t/n/[bc]")
    assert search_is_quick(some, pattern)
    matching = Matching(some, pattern)
    assert (matching.same, matching.cost) == (None, 0)
    while (work := matching.take()) is not None:
        work()
    assert_selection(matching.result(), persistent("b"))
    assert matching.result().listing is listing
    assert_selection(search_selection(some, pattern), persistent("b"))
    assert Matching(listing.all(), pattern).same is not None
