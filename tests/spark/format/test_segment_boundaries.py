"""A name decides by itself whether it begins a segment."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_core_spark.format.segment_boundaries import begins_segment, cut_levels, name_hashes, piece_starts
from tests.support.topics import local_names

_MASK = 2**64 - 1


def column(names: list[str]) -> pa.LargeStringArray:
    return pa.array(names, pa.large_string())


def hash_of(text: bytes) -> int:
    """The hash of the specification."""
    value = sum((byte + 1) * pow(0x9E3779B97F4A7C15, place, 2**64) for place, byte in enumerate(text)) & _MASK
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
    value = (value ^ (value >> 27)) * 0x94D049BB133111EB & _MASK
    return value ^ (value >> 31)


@given(st.lists(local_names(), max_size=30), st.integers(0, 3))
def test_hashes_are_those_of_the_specification(names: list[str], skipped: int) -> None:
    found = name_hashes(b"persistent://t/n/", column(["é", *names])[1:][min(skipped, len(names)) :])
    wanted = [hash_of(f"persistent://t/n/{name}".encode()) for name in names[min(skipped, len(names)) :]]
    assert found.tolist() == wanted


def test_hashes_do_not_depend_on_the_blocks_that_they_are_made_in() -> None:
    names = [f"{i}-" + "x" * (i % 5000) for i in range(400)]  # a megabyte
    found = name_hashes(b"p", column(names)).tolist()
    assert found == [hash_of(b"p" + name.encode()) for name in names]
    with pytest.raises(ValueError, match="at most 32767"):
        name_hashes(b"", column(["x" * 32768]))


def test_segments_have_about_the_bytes_that_they_shall_have() -> None:
    names = column([f"orders-{i:06}" for i in range(20_000)])
    marks = begins_segment("t/n", "persistent", names, target=4096)
    expected = 20_000 * (len("persistent://t/n/") + 13) / 4096
    assert 0.7 * expected < marks.sum() < 1.3 * expected
    limit = 2**64 // 4096 - 1
    size = len("persistent://t/n/") + 13
    some = [hash_of(f"persistent://t/n/orders-{i:06}".encode()) < size * limit for i in range(2000)]
    assert marks[:2000].tolist() == some
    assert begins_segment("t/n", "persistent", names, target=16).all()  # a name longer than a segment


@given(st.lists(local_names(), max_size=60, unique=True), st.sampled_from([1, 64, 300, 2**30]))
def test_levels_are_those_of_smaller_segments(names: list[str], target: int) -> None:
    levels, sizes = cut_levels("t/n", "persistent", column(names), target=target)
    begins = begins_segment("t/n", "persistent", column(names), target=target)
    assert (levels == 0).tolist() == begins.tolist()
    for name, level, size in zip(names, levels.tolist(), sizes.tolist(), strict=True):
        full = f"persistent://t/n/{name}".encode()
        assert size == len(full)
        limit = min(size, target) * (2**64 // target - 1)
        if limit:
            assert hash_of(full) < limit * 2**level
            assert not level or hash_of(full) >= limit * 2 ** (level - 1)


@given(st.lists(st.tuples(st.integers(1, 40), st.integers(0, 12)), min_size=1), st.integers(1, 300))
def test_pieces_fit_and_begin_at_the_lowest_levels(rows: list[tuple[int, int]], largest: int) -> None:
    sizes = np.array([size for size, _ in rows])
    levels = np.array([level for _, level in rows])
    starts = piece_starts(levels, sizes, largest)
    assert starts[0] == 0
    assert starts == sorted(set(starts))
    pieces = list(zip(starts, [*starts[1:], len(rows)], strict=True))
    assert all(high - low == 1 or sizes[low:high].sum() <= largest for low, high in pieces)
    if sizes.sum() <= largest:
        assert starts == [0]
    # No cut at a name was made while one of a lower level between the same cuts was left.
    for start in starts[1:]:
        level = levels[start]
        before = max(
            other for other in (0, *starts) if other < start and (not other or levels[other] < level)
        )
        after = min(
            other
            for other in (*starts, len(rows))
            if other > start and (other == len(rows) or levels[other] < level)
        )
        inside = range(before + 1, after)
        assert all(row in starts for row in inside if levels[row] < level)
