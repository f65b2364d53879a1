"""Hashes of parts of a listing: computed once."""

from __future__ import annotations

from broker_core.listing.listing import data_of, part_of
from broker_core.listing.part_hash import compute_hash, remembered_hash
from broker_core.listing.topics_hash import topics_hash
from broker_core.patterns import compile_pattern
from tests.support.topics import listing_of, persistent


def test_what_is_remembered_by_the_listing() -> None:
    listing = listing_of(persistent("a", "b", "c"))
    data = data_of(listing)
    given, found = part_of(listing.rows([0, 2])), part_of(listing.matching(compile_pattern("t/n/[ac]")))
    for part in (given, found):
        assert remembered_hash(data, part) is None
        assert compute_hash(data, part) == topics_hash(persistent("a", "c"))
    assert remembered_hash(data, given) == topics_hash(persistent("a", "c"))
    assert remembered_hash(data, found) is None  # the part itself is remembered, and has it
    stretch = part_of(listing.range(1, 3))
    assert compute_hash(data, stretch) == remembered_hash(data, stretch) == topics_hash(persistent("b", "c"))


def test_the_hash_of_a_part_is_shared_by_all_who_ask_for_it() -> None:
    listing = listing_of(persistent("a", "b", "c"))
    pattern = compile_pattern("t/n/[ac]")
    assert listing.matching(pattern).topics_hash == topics_hash(persistent("a", "c"))
    assert listing.matching(pattern).hash_known
