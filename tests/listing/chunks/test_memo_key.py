"""No pattern of a client is a key of anything but its own rows."""

from __future__ import annotations

import pytest

from broker_core.listing.changes.version_splice import ListingChange, splice
from broker_core.listing.chunks.chunk_rows import MemoKey, Remembered, properties_key
from broker_core.listing.listing import Listing, data_of, listing_of
from broker_core.listing.property_values import select_by_properties
from broker_core.names import Mode
from broker_core.patterns import compile_pattern
from tests.support.chunks import tiny_chunks

PAIRS = {"region": "r3"}


def with_properties() -> Listing:
    names = [f"persistent://t/n/a{number}" for number in range(100)]
    empty = Listing.from_names("t/n", Mode.ALL, [])
    values = {"region": [f"r{number % 5}" for number in range(100)]}
    return listing_of(splice(data_of(empty), ListingChange([], names, values)))


@pytest.mark.parametrize("limit", [None, 700])
def test_a_pattern_like_a_key_shares_nothing(limit: int | None) -> None:
    texts = [
        repr(properties_key(PAIRS)),
        f"\0properties{sorted(PAIRS.items())!r}",
        "\0hash",
        "\0checked",
        *(str(each) for each in Remembered),
    ]
    if limit is None:
        check(texts)
    else:
        with tiny_chunks(limit):
            check(texts)


def check(texts: list[str]) -> None:
    for pattern_first in (True, False):
        listing = with_properties()
        data = data_of(listing)
        given = listing.range(3, 20)
        known = given.topics_hash
        for text in texts if pattern_first else []:
            assert len(listing.matching(compile_pattern(text))) == 0
        assert len(select_by_properties(data, PAIRS)) == 20
        for text in texts:
            assert len(listing.matching(compile_pattern(text))) == 0
            assert len(given.matching(compile_pattern(text))) == 0
        assert given.topics_hash == known
        assert len(select_by_properties(data, PAIRS)) == 20


def test_a_key_of_properties_is_one_whatever_their_order() -> None:
    both: set[MemoKey] = {properties_key({"a": "1", "b": "2"}), properties_key({"b": "2", "a": "1"})}
    assert len(both) == 1
    assert properties_key({"a": "1"}) not in both
