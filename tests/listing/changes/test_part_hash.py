"""Hashes of parts of a listing: computed once."""

from __future__ import annotations

from broker_core.listing.listing import data_of, part_of, unhashed_bytes
from broker_core.listing.listing_hash import topics_hash
from broker_core.patterns import compile_pattern
from tests.support.chunks import tiny_chunks
from tests.support.topics import listing_of, persistent


def test_what_is_remembered_by_the_listing() -> None:
    listing = listing_of(persistent("a", "b", "c"))
    data = data_of(listing)
    given, found = part_of(listing.rows([0, 2])), part_of(listing.matching(compile_pattern("t/n/[ac]")))
    for part in (given, found):
        assert part.remembered_hash(data) is None
        assert part.compute_hash(data) == topics_hash(persistent("a", "c"))
    assert given.remembered_hash(data) == topics_hash(persistent("a", "c"))
    assert found.remembered_hash(data) is None  # the part itself is remembered, and has it
    stretch = part_of(listing.range(1, 3))
    assert stretch.compute_hash(data) == stretch.remembered_hash(data) == topics_hash(persistent("b", "c"))


def test_only_chunks_that_changed_are_read_again() -> None:
    names = persistent(*(f"{number:05}" for number in range(2000)))
    with tiny_chunks(2000):
        listing = listing_of(names)
        size = listing.all().fields_size
        assert unhashed_bytes(listing.all()) == size
        assert unhashed_bytes(listing.range(7, 7)) == 0
        assert listing.topics_hash == topics_hash(names)
        assert unhashed_bytes(listing.all()) == 0
        assert unhashed_bytes(listing.range(1, 1999)) < size // 5
        after = listing.with_changes(names[:1], [])
        assert unhashed_bytes(after.all()) < size // 5
        some = after.matching(compile_pattern("t/n/.*7"))
        assert unhashed_bytes(some) == some.fields_size
        assert some.topics_hash == topics_hash(some.names.to_pylist())
        assert unhashed_bytes(some) == 0


def test_the_hash_of_a_part_is_shared_by_all_who_ask_for_it() -> None:
    listing = listing_of(persistent("a", "b", "c"))
    pattern = compile_pattern("t/n/[ac]")
    assert listing.matching(pattern).topics_hash == topics_hash(persistent("a", "c"))
    assert listing.matching(pattern).hash_known
