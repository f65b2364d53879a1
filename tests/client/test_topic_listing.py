"""A listing as a sequence, over a column and over a few names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from broker_core.client import TopicListing

SORTED = [f"persistent://t/n/{letter}" for letter in "abcdefé"]
SHUFFLED = [SORTED[place] for place in (3, 0, 6, 5, 1, 4, 2)]


def column(names: list[str]) -> Any:
    return pa.array(names, pa.large_string())


@pytest.mark.parametrize("names", [SORTED, SHUFFLED])
@pytest.mark.parametrize("make", [list, column])
def test_it_is_a_sequence(names: list[str], make: Any) -> None:
    listing = TopicListing(make(names), topics_hash="00")
    assert isinstance(listing, Sequence)
    assert len(listing) == 7
    assert list(listing) == names
    assert (listing[0], listing[-1]) == (names[0], names[-1])
    assert listing == names
    assert listing.__eq__(tuple(names)) is True
    assert listing != names[:-1]
    assert listing != [*names[:-1], "x"]
    assert listing == TopicListing(column(names))
    assert listing != object()
    assert listing.index(names[4]) == 4
    assert list(reversed(listing)) == names[::-1]
    with pytest.raises(IndexError):
        listing[7]


@pytest.mark.parametrize("names", [SORTED, SHUFFLED])
@pytest.mark.parametrize("make", [list, column])
def test_what_is_in_it(names: list[str], make: Any) -> None:
    listing = TopicListing(make(names))
    assert all(name in listing for name in names)
    for other in (
        "",
        "persistent://t/n/",
        "persistent://t/n/bb",
        "persistent://t/n/z",
        "z",
        "\ud800",
        7,
        None,
    ):
        assert other not in listing


@pytest.mark.parametrize("make", [list, column])
def test_a_slice_is_a_listing_without_a_hash(make: Any) -> None:
    listing = TopicListing(make(SORTED), filtered=False, topics_hash="00")
    part = listing[2:4]
    assert isinstance(part, TopicListing)
    assert part == SORTED[2:4]
    assert (part.filtered, part.changed, part.topics_hash) == (False, True, None)
    assert listing[::-2] == SORTED[::-2]
    assert part.names.equals(column(SORTED[2:4]))


@pytest.mark.parametrize("make", [list, column])
def test_an_empty_one(make: Any) -> None:
    listing = TopicListing(make([]))
    assert (len(listing), list(listing), "a" in listing, bool(listing)) == (0, [], False, False)
    assert len(listing.names) == 0


def test_many_names_are_read_in_blocks() -> None:
    names = [f"persistent://t/n/{number:05}" for number in range(10_000)]
    assert list(TopicListing(column(names))) == names


def test_it_cannot_be_changed() -> None:
    listing = TopicListing([*SORTED], topics_hash="00")
    for name in ("filtered", "changed", "topics_hash", "names"):
        with pytest.raises(AttributeError):
            setattr(listing, name, True)
    with pytest.raises(TypeError):
        hash(listing)


def test_what_it_shows() -> None:
    assert repr(TopicListing([*SORTED], topics_hash="00")) == "<TopicListing: 7 topics, hash 00>"
    assert repr(TopicListing([], changed=False, topics_hash="00")) == "<TopicListing: unchanged, hash 00>"
