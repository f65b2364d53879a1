"""The positions of a run's sections follow from their sizes."""

from __future__ import annotations

import pytest

from broker_core_spark.format import segment_layout


def test_numbers_have_the_sizes_of_the_specification() -> None:
    assert (segment_layout.HEADER.size, segment_layout.TRAILER.size, segment_layout.ENTRY.itemsize) == (
        16,
        24,
        48,
    )
    assert segment_layout.ENTRY.fields is not None
    assert {name: segment_layout.ENTRY.fields[name][1] for name in segment_layout.ENTRY.names or ()} == {
        "key": 0,
        "count": 16,
        "crc": 20,
        "joined": 24,
        "first": 32,
        "kind": 40,
        "zero": 44,
    }


@pytest.mark.parametrize(("size", "pad"), [(0, 0), (1, 7), (7, 1), (8, 0), (9, 7)])
def test_sections_begin_at_multiples_of_eight(size: int, pad: int) -> None:
    assert segment_layout.padding(size) == pad


def test_sections_lie_one_behind_the_other() -> None:
    assert segment_layout.NAMES.place(16, 2, 9) == (2, ((16, 12), (32, 9)), 48)
    assert segment_layout.POSTINGS.place(16, 2, 1, 3) == (2, ((16, 48), (64, 12)), 80)


@pytest.mark.parametrize(("names", "words"), [(1, 1), (32, 1), (33, 2), (64, 2)])
def test_a_bitmap_has_a_bit_for_each_name(names: int, words: int) -> None:
    assert segment_layout.bit_words(names) == words
