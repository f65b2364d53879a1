"""Many names are found where each of them is found alone."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from broker_core.listing.listing import data_of
from broker_core.listing.name_places import places
from broker_core.names.hash_order import hash_order_bytes
from tests.support.chunks import tiny_chunks
from tests.support.topics import full_names, listing_of, persistent


@settings(max_examples=150)
@given(st.lists(full_names(), max_size=40), st.lists(full_names(), max_size=40), st.data())
def test_places_are_those_of_each_name(names: list[str], others: list[str], data: st.DataObject) -> None:
    listing = data_of(listing_of(names))
    known = data.draw(st.lists(st.sampled_from(names), max_size=20)) if names else []
    keys = sorted({hash_order_bytes(name.encode()) for name in [*others, *known]})
    assert places(listing, keys) == [listing.place(key) for key in keys]


def test_names_in_front_of_all_and_behind_all() -> None:
    listing = data_of(listing_of(persistent(*(f"b{number:03}" for number in range(200)))))
    keys = [name.encode() for name in persistent("a", "aa", "b000", "b199", "b1990", "c")]
    assert [there for _, _, there in places(listing, keys)] == [False, False, True, True, False, False]
    assert places(listing, keys) == [listing.place(key) for key in keys]
    assert places(listing, []) == []
    assert places(data_of(listing_of([])), keys) == [(0, 0, False)] * 6


def test_names_are_looked_for_in_some_chunks_alone() -> None:
    with tiny_chunks(600):
        listing = data_of(listing_of(persistent(*(f"b{number:03}" for number in range(200)))))
    count = len(listing.chunks)
    assert count > 4
    keys = [name.encode() for name in persistent("a", "b000", "b100", "b1000", "b199", "c")]
    for low, high in ((0, count), (1, count - 1), (2, 3), (2, 2)):
        assert places(listing, keys, low, high) == [listing.place(key, low, high) for key in keys]
