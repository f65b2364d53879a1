"""Many names are found at the places where each is found alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_core.listing.changes.version_splice import locate, places, remembered_places
from broker_core.listing.listing import data_of
from broker_core.names.hash_order import hash_order_bytes
from tests.support.chunks import first_keys_read, tiny_chunks
from tests.support.topics import full_names, listing_of, persistent


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


def test_the_chunk_of_a_name_is_found_without_its_row() -> None:
    with tiny_chunks(600):
        listing = data_of(listing_of(persistent(*(f"b{number:03}" for number in range(200)))))
    keys = [name.encode() for name in persistent("a", "b000", "b0000", "b100", "b199", "c")]
    assert [listing.chunk_of(key) for key in keys] == [listing.place(key)[0] for key in keys]


def test_a_few_names_of_a_listing_that_is_new_are_found_without_a_look_at_every_chunk(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An answer that is made of another one is a new listing each time, of hundreds of chunks perhaps."""
    with tiny_chunks(600):
        listing = data_of(listing_of(persistent(*(f"b{number:04}" for number in range(3000)))))
    looked_at = first_keys_read(monkeypatch)
    keys = [name.encode() for name in persistent("a", "b0100", "b2999x")]
    found = places(listing, keys)
    assert len(listing.chunks) > 100
    assert 0 < len(looked_at) <= 3 * len(listing.chunks).bit_length()
    assert listing.first_keys == [hash_order_bytes(chunk.name(0)) for chunk in listing.chunks]
    looked_at.clear()
    assert places(listing, keys) == found, "by what is known now"
    assert not looked_at


def test_names_are_looked_for_in_some_chunks_alone() -> None:
    with tiny_chunks(600):
        listing = data_of(listing_of(persistent(*(f"b{number:03}" for number in range(200)))))
    count = len(listing.chunks)
    assert count > 4
    keys = [name.encode() for name in persistent("a", "b000", "b100", "b1000", "b199", "c")]
    for low, high in ((0, count), (1, count - 1), (2, 3), (2, 2)):
        assert places(listing, keys, low, high) == [listing.place(key, low, high) for key in keys]


def test_names_are_located_in_any_order_and_more_than_once() -> None:
    with tiny_chunks(600):
        listing = data_of(listing_of(persistent(*(f"b{number:03}" for number in range(200)))))
    keys = [name.encode() for name in persistent("c", "b100", "a", "b100", "b0001", "b000")]
    rows, present = locate(listing, keys)
    assert rows.tolist() == [200, 100, 0, 100, 1, 0]
    assert present.tolist() == [False, True, False, True, False, True]
    rows, present = locate(data_of(listing_of([])), keys)
    assert rows.tolist() == [0] * 6
    assert not present.any()


def test_remembered_places_are_those_of_the_names_and_of_the_listing() -> None:
    with tiny_chunks(600):
        listing = data_of(listing_of(persistent(*(f"b{number:03}" for number in range(0, 400, 2)))))
        other = data_of(listing_of(persistent(*(f"b{number:03}" for number in range(0, 400, 3)))))
    every = [name.encode() for name in persistent(*(f"b{number:03}" for number in range(400)))]
    for keys in (every, every[:200], every[::2], every[:3], []):
        for data in (listing, other):
            for _ in range(2):
                assert remembered_places(data, keys) == places(data, keys)
    assert len(listing.memo) == len(other.memo) == 3  # of a few names nothing is kept
