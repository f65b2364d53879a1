"""A name decides by itself whether it begins a segment."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_core_spark.format.segment_boundaries import begins_segment, name_hashes
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
