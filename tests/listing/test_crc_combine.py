"""Combining hashes of parts into the hash of the whole, as the library and the broker compute it."""

from __future__ import annotations

import random

import google_crc32c
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_core.listing.listing_hash import (
    crc_text,
    joined_groups,
    shifted,
    shifted_alike,
    shifted_one,
    topics_hash,
    utf16_key,
)
from tests.support.topics import full_names

PARTS = st.binary(max_size=40)


def combined(first: int, second: int, second_size: int) -> int:
    """The CRC32C of a text from those of its halves and the length of the second, in bytes."""
    return int(shifted(np.array([first]), np.array([second_size]))[0]) ^ second


@given(st.binary(max_size=300), st.binary(max_size=300))
def test_two_halves(first: bytes, second: bytes) -> None:
    whole = google_crc32c.value(first + second)
    assert combined(google_crc32c.value(first), google_crc32c.value(second), len(second)) == whole


@pytest.mark.parametrize("size", [1, 255, 256, 65_535, 65_536, 1_000_003, 2**24])
def test_a_long_second_half(size: int) -> None:
    second = bytes(size)
    whole = google_crc32c.extend(google_crc32c.value(b"first"), second)
    assert combined(google_crc32c.value(b"first"), google_crc32c.value(second), size) == whole


@given(st.lists(st.lists(PARTS, min_size=1, max_size=5), max_size=8))
def test_groups_of_parts_are_joined_by_commas(groups: list[list[bytes]]) -> None:
    parts = [part for group in groups for part in group]
    starts = np.cumsum([0, *(len(group) for group in groups)])[:-1]
    crcs, sizes = joined_groups(
        np.array([google_crc32c.value(part) for part in parts], np.uint32),
        np.array([len(part) for part in parts], np.uint64),
        starts,
    )
    assert crcs.tolist() == [google_crc32c.value(b",".join(group)) for group in groups]
    assert sizes.tolist() == [len(b",".join(group)) for group in groups]


@given(st.lists(full_names(), min_size=1, max_size=30, unique=True), st.data())
def test_segments_of_a_listing_have_the_broker_s_hash_together(names: list[str], data: st.DataObject) -> None:
    ordered = sorted(names, key=utf16_key)
    cuts = sorted(data.draw(st.sets(st.integers(1, len(ordered) - 1)))) if len(ordered) > 1 else []
    parts = [
        ",".join(ordered[low:high]).encode()
        for low, high in zip([0, *cuts], [*cuts, len(ordered)], strict=True)
    ]
    crcs, _ = joined_groups(
        np.array([google_crc32c.value(part) for part in parts], np.uint32),
        np.array([len(part) for part in parts], np.uint64),
        np.array([0]),
    )
    assert crc_text(int(crcs[0])) == topics_hash(names)


def test_a_length_that_no_text_has_is_refused() -> None:
    with pytest.raises(ValueError, match="at most"):
        shifted(np.array([1], np.uint32), np.array([2**48], np.uint64))
    assert (
        joined_groups(np.empty(0, np.uint32), np.empty(0, np.uint64), np.empty(0, np.int64))[0].tolist() == []
    )


def test_one_is_moved_as_a_column_is() -> None:
    pick = random.Random(8)
    for size in (0, 1, 15, 16, 255, 2**20, 2**40 - 1, *(pick.randrange(2**30) for _ in range(20))):
        crc = pick.randrange(2**32)
        (moved,) = shifted(np.array([crc], np.uint32), np.array([size]))
        assert shifted_one(crc, size) == int(moved)
    with pytest.raises(ValueError, match="length"):
        shifted_one(1, 2**48)


@given(st.lists(st.integers(0, 2**32 - 1), max_size=5), st.integers(-(2**47), 2**47))
def test_all_are_shifted_by_the_same_number_of_bytes_and_back(crcs: list[int], size: int) -> None:
    column = np.array(crcs, np.uint32)
    forth = shifted_alike(column, size)
    assert shifted_alike(forth, -size).tolist() == crcs
    if size >= 0:
        assert forth.tolist() == shifted(column, np.full(len(crcs), size)).tolist()
    with pytest.raises(ValueError, match="at most"):
        shifted_alike(column, -(2**48))
