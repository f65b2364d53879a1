"""The rows of an answer: a slice if they are adjacent, in memory that cannot be written."""

from __future__ import annotations

import numpy as np
import pytest

from broker_core.listing.listing import data_of
from broker_core.listing.listing_data import ListingData
from broker_core.listing.listing_part import ListingPart
from tests.support.topics import listing_of, persistent

#: Bytes of a chunk of the second round.
TINY_CHUNK = 200


@pytest.fixture(name="data")
def ten_topics() -> ListingData:
    return data_of(listing_of(persistent(*(f"{number}{'x' * 40}" for number in range(10)))))


def test_none_is_an_empty_slice(data: ListingData) -> None:
    part = ListingPart.of_rows(np.array([], np.int64), data, "a")
    assert (part.low, part.high, part.pieces, part.text, len(part)) == (0, 0, None, "a", 0)


def test_neighbours_are_a_slice_and_others_small_numbers(data: ListingData) -> None:
    slice_ = ListingPart.of_rows(np.array([3, 4, 5]), data)
    assert (slice_.low, slice_.high, slice_.pieces, slice_.key(), len(slice_)) == (
        3,
        6,
        None,
        (3, 6),
        3,
    )
    part = ListingPart.of_rows(np.array([3, 5]), data)
    assert (part.low, part.high, len(part)) == (3, 6, 2)
    rows = part.rows_in(data)
    assert rows.dtype == np.int32
    assert rows.tolist() == [3, 5]
    assert part.pieces is not None
    assert all(piece.rows is None or not piece.rows.flags.writeable for _, piece in part.pieces)


def test_a_stretch_of_some_rows(data: ListingData) -> None:
    part = ListingPart.of_rows(np.array([0, 2, 3, 6, 9]), data)
    for low in range(6):
        for high in range(low, 6):
            assert part.stretch(low, high, data).rows_in(data).tolist() == [0, 2, 3, 6, 9][low:high]
    assert ListingPart(2, 8).stretch(1, 4, data).rows_in(data).tolist() == [3, 4, 5]


def test_rows_that_are_given_are_copied_and_looked_at(data: ListingData) -> None:
    mine = np.array([1, 3])
    part = ListingPart.given(mine, data)
    mine[0] = 2
    assert part.is_given
    assert part.rows_in(data).tolist() == [1, 3]
    for wrong in ([3, 1], [1, 1], [[1]], [0.5]):
        with pytest.raises(ValueError, match="ascending integers"):
            ListingPart.given(np.array(wrong), data)
    with pytest.raises(IndexError):
        ListingPart.given([10], data)


@pytest.mark.parametrize("rows", [list(range(10)), [2, 3, 4, 5], [0, 2, 3, 6, 9], []])
def test_rows_by_a_mask_and_by_places(rows: list[int], data: ListingData) -> None:
    part = ListingPart.of_rows(np.array(rows, np.int64), data, "a")
    for number in range(1 << len(rows)):
        places = [place for place in range(len(rows)) if number >> place & 1]
        keep = np.zeros(len(rows), bool)
        keep[places] = True
        wanted = ListingPart.of_rows(np.array([rows[place] for place in places], np.int64), data)
        for found in (part.masked(keep, data), part.at(np.array(places, np.int64), data)):
            assert found.rows_in(data).tolist() == wanted.rows_in(data).tolist()
            assert (found.low, found.high, found.text, found.key()) == (
                wanted.low,
                wanted.high,
                "a",
                wanted.key(),
            )


def test_each_set_of_rows_has_a_key_of_its_own(data: ListingData) -> None:
    keys = set()
    for number in range(1, 1 << 10):
        part = ListingPart.of_rows(np.flatnonzero([number >> row & 1 for row in range(10)]), data)
        keys.add(part.key())
    assert len(keys) == 1023
