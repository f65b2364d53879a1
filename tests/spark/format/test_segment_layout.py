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
    place = segment_layout.RunLayout(start=16, names=2, fields_size=9, entries=1, rows=3)
    assert place.sections() == ((16, 12), (32, 9), (48, 48), (96, 12))
    assert place.end == 112
    assert place.record() == {"names": 2, "fields_size": 9, "entries": 1, "rows": 3}
