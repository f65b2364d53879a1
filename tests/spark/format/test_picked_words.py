"""What a selector picks has one form, the shortest of three, and many groups are packed as each alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_core_spark.format.picked_words import check_matches, packed, unpacked, word_counts
from broker_core_spark.format.segment_layout import ENTRY, KIND_BITS, KIND_RANGE, KIND_ROWS, bit_words


def rows_of(picked: object) -> list[int]:
    return list(range(*picked)) if isinstance(picked, tuple) else np.asarray(picked).tolist()


GROUPS = st.lists(
    st.integers(1, 200).flatmap(
        lambda names: st.tuples(st.just(names), st.sets(st.integers(0, names - 1), min_size=1))
    ),
    min_size=1,
    max_size=8,
)


@given(GROUPS)
def test_rows_are_unpacked_as_they_were_packed(groups: list[tuple[int, set[int]]]) -> None:
    names = np.array([count for count, _ in groups])
    counts = np.array([len(chosen) for _, chosen in groups])
    rows = np.array([row for _, chosen in groups for row in sorted(chosen)], np.int64)
    kinds, firsts, words = packed(rows, counts, names)
    used = 0
    for number, (size, chosen) in enumerate(groups):
        entry = np.zeros(1, ENTRY)
        entry["kind"], entry["first"], entry["count"] = kinds[number], firsts[number], len(chosen)
        assert rows_of(unpacked(entry[0], words, size)) == sorted(chosen)
        is_range = max(chosen) - min(chosen) + 1 == len(chosen)
        shorter = KIND_BITS if bit_words(size) < len(chosen) else KIND_ROWS
        assert kinds[number] == (KIND_RANGE if is_range else shorter)
        own = 0 if is_range else min(len(chosen), bit_words(size))
        assert word_counts(entry, size).tolist() == [own]
        assert is_range or firsts[number] == used
        used += own
    assert len(words) == used


@pytest.mark.parametrize(
    "picked",
    [(0, 10), (-1, 2), (2, 1), np.array([0, 9]), np.array([-1, 1]), np.array([1, 0]), np.array([0.5])],
)
def test_rows_that_are_none_are_refused(picked: Any) -> None:
    with pytest.raises(ValueError, match=r"range|row numbers"):
        check_matches(picked, 9)


@pytest.mark.parametrize("picked", [(3, 5), (9, 9), np.array([0, 8]), np.array([], np.int64)])
def test_rows_are_counted(picked: Any) -> None:
    assert check_matches(picked, 9) == len(rows_of(picked))
