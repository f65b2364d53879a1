"""The rows of an answer: a slice if they are adjacent, in memory that cannot be written."""

from __future__ import annotations

import numpy as np
import pytest

from broker_core.listing.listing_part import Part


def test_none_is_an_empty_slice() -> None:
    part = Part.of_rows(np.array([], np.int64), 10, "a")
    assert (part.low, part.high, part.rows, part.text) == (0, 0, None, "a")


def test_neighbours_are_a_slice_and_others_small_numbers() -> None:
    slice_ = Part.of_rows(np.array([3, 4, 5]), 10)
    assert (slice_.low, slice_.high, slice_.rows, slice_.key, len(slice_)) == (3, 6, None, (3, 6), 3)
    part = Part.of_rows(np.array([3, 5]), 10)
    assert (part.low, part.high, len(part)) == (3, 6, 2)
    assert part.rows is not None
    assert part.rows.dtype == np.int32
    assert not part.rows.flags.writeable


def test_rows_that_are_given_are_copied_and_looked_at() -> None:
    mine = np.array([1, 3])
    part = Part.given(mine, 4)
    mine[0] = 2
    assert part.is_given
    assert part.rows is not None
    assert part.rows.tolist() == [1, 3]
    for wrong in ([3, 1], [1, 1], [[1]], [0.5]):
        with pytest.raises(ValueError, match="ascending integers"):
            Part.given(np.array(wrong), 4)
    with pytest.raises(IndexError):
        Part.given([4], 4)
