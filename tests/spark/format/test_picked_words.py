"""What a selector picks has one form, the shortest of three."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_core_spark.format.picked_words import divided, packed, unpacked, word_counts
from broker_core_spark.format.segment_layout import ENTRY, KIND_BITS, KIND_RANGE, KIND_ROWS, bit_words


def rows_of(picked: object) -> list[int]:
    return list(range(*picked)) if isinstance(picked, tuple) else np.asarray(picked).tolist()


@given(
    st.integers(1, 200).flatmap(lambda names: st.tuples(st.just(names), st.sets(st.integers(0, names - 1))))
)
def test_rows_are_unpacked_as_they_were_packed(case: tuple[int, set[int]]) -> None:
    names, chosen = case
    rows = np.array(sorted(chosen), np.int64)
    kind, first, count, words = packed(rows, names)
    entry = np.zeros(1, ENTRY)
    entry["kind"], entry["first"], entry["count"] = kind, first, count
    assert rows_of(unpacked(entry[0], words, names)) == rows.tolist()
    assert count == len(rows)
    assert word_counts(entry, names).tolist() == [len(words)]
    is_range = not len(rows) or rows[-1] - rows[0] + 1 == len(rows)
    shorter = KIND_BITS if bit_words(names) < len(rows) else KIND_ROWS
    assert kind == (KIND_RANGE if is_range else shorter)
    assert len(words) == (0 if is_range else min(len(rows), bit_words(names)))


def test_a_range_needs_no_words() -> None:
    assert packed((3, 5), 9)[:3] == (KIND_RANGE, 3, 2)
    assert packed(np.array([3, 4]), 9)[:3] == (KIND_RANGE, 3, 2)


@pytest.mark.parametrize("picked", [(0, 10), (-1, 2), np.array([0, 9]), np.array([1, 0]), np.array([0.5])])
def test_rows_that_are_none_are_refused(picked: object) -> None:
    with pytest.raises(ValueError, match=r"range|row numbers"):
        packed(picked, 9)  # type: ignore[arg-type]


@given(st.data())
def test_what_is_divided_is_what_each_stretch_has(data: st.DataObject) -> None:
    names = data.draw(st.integers(1, 60))
    bounds = [
        0,
        *sorted(data.draw(st.sets(st.integers(1, names - 1)) if names > 1 else st.just(set()))),
        names,
    ]
    rows = sorted(data.draw(st.sets(st.integers(0, names - 1))))
    low, high = sorted(data.draw(st.tuples(st.integers(0, names), st.integers(0, names))))
    for picked, wanted in ((np.array(rows, np.uint32), rows), ((low, high), list(range(low, high)))):
        expected = [
            (number, [row - bounds[number] for row in wanted if bounds[number] <= row < bounds[number + 1]])
            for number in range(len(bounds) - 1)
        ]
        found = [(number, rows_of(part)) for number, part in divided(picked, bounds)]
        assert found == [(number, part) for number, part in expected if part]
