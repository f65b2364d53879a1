"""Finding names that contain a text, against a search name by name."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from broker_core.listing.search.substring_search import rows_with

RARE = 10_000  # names without the text around those with it, so that it is not in too many


def column(names: list[bytes]) -> tuple[pa.Buffer, np.ndarray]:
    """The names one behind the other, with bytes in front of and behind them that are of no name."""
    offsets = np.cumsum([3, *map(len, names)], dtype=np.int64)
    return pa.py_buffer(b"abc" + b"".join(names) + b"abc"), offsets


def searched(names: list[bytes], literal: bytes, low: int = 0, high: int | None = None) -> list[int] | None:
    text, offsets = column(names)
    rows = rows_with(text, offsets, low, len(names) if high is None else high, literal)
    return None if rows is None else rows.tolist()


def having(names: list[bytes], literal: bytes) -> list[int]:
    return [row for row, name in enumerate(names) if literal in name]


def touched(names: list[bytes], literal: bytes) -> set[int]:
    """The rows that have a byte of any occurrence in the names as one text: no other row may be given."""
    text = b"".join(names)
    row_of_byte = [row for row, name in enumerate(names) for _ in name]
    starts = [start for start in range(len(text)) if text.startswith(literal, start)]
    return {row_of_byte[start + place] for start in starts for place in range(len(literal))}


few_bytes = st.text("abé😀", max_size=7).map(str.encode)


@given(
    st.lists(few_bytes, max_size=40),
    st.text("abé😀", min_size=1, max_size=6).map(str.encode),
    st.integers(0, 40),
    st.integers(0, 40),
)
@example([b"aaaa", b"aaa"], b"aaa", 0, 0)
@example([], b"a", 0, 0)
def test_each_name_with_the_text_is_found(names: list[bytes], literal: bytes, front: int, back: int) -> None:
    # Around the searched names are others that have the text: they must not be given.
    every = [literal] * front + names + [b"."] * 300 + [literal] * back
    low, high = front, len(every) - back
    rows = searched(every, literal, low, high)
    assert rows is not None
    within = every[low:high]
    assert rows == sorted(set(rows))
    assert {low + row for row in having(within, literal)} <= set(rows)
    assert set(rows) <= {low + row for row in touched(within, literal)}


@pytest.mark.parametrize(
    ("names", "literal", "expected"),
    [
        ([b"xyz-1", b"-xyz", b"1-xyz"], b"xyz", [0, 1, 2]),
        ([b"xyz", b"xyz"], b"xyz", [0, 1]),
        ([b"-zaza", b"zaz-"], b"zaz", [0, 1]),
        # The find across both names hides the one in the second.
        ([b"-za", b"zaz-"], b"zaz", [0, 1]),
        # A find across two names and none in either: both are given, for the caller to look at.
        ([b"-xy", b"z-"], b"xyz", [0, 1]),
        # A find across three names.
        ([b"-x", b"y", b"z-"], b"xyz", [0, 2]),
        ([b"xy", b"", b"xyz"], b"xyz", [2]),
        ([b"xyzxyzxyz"], b"xyz", [0]),
        (["größe".encode(), "grösse".encode()], "ße".encode(), [0]),
        ([b"x" * 9], b"x" * 10, []),
        ([b"x" * 5000 + b"y"], b"x" * 1000 + b"y", [0]),
        ([b"a\0b", b"a\0"], b"a\0", [0, 1]),
    ],
)
def test_ends_overlaps_and_edges(names: list[bytes], literal: bytes, expected: list[int]) -> None:
    others = [b"."] * RARE
    assert searched(names + others, literal) == expected
    assert searched(others + names, literal) == [RARE + row for row in expected]


@pytest.mark.parametrize("count", [0, 1, 1022, 1023, 1024, 1025, 2047, 2048, 2049, 5000])
@pytest.mark.parametrize("ending", [b"", b"."])
def test_any_number_of_finds(count: int, ending: bytes) -> None:
    """Finds are looked at in batches; the last of a batch may be the last of all."""
    names = [b"-o-"] * 3 * count + [b"-xyz" + ending] * count
    mixed = [names[place * 7 % len(names)] for place in range(len(names))]
    spread = [b"-o-", b"-o-", b"-o-", b"-xyz" + ending] * count
    assert searched(spread, b"xyz") == having(spread, b"xyz")
    assert searched(mixed, b"none") == []


@pytest.mark.parametrize(
    "names",
    [
        [b"aaa"] * 20,
        [b"aaa"] * 100_000,
        [b"a" * 40] * 5000,
        [b"aaa", b"b"] * 50_000,
        # The search is given up before the names without the text are reached.
        [b"aaa"] * 2000 + [b"bbb"] * 100_000,
    ],
)
def test_a_text_in_too_many_names_is_given_up(names: list[bytes]) -> None:
    assert searched(names, b"aaa") is None


def test_a_text_in_a_quarter_of_the_names_is_searched() -> None:
    names = [b"b", b"aaa", b"b", b"b"] * 30_000
    assert searched(names, b"aaa") == having(names, b"aaa")


def test_an_empty_text_is_refused() -> None:
    with pytest.raises(ValueError, match="everywhere"):
        searched([b"a"], b"")


def test_no_row_and_an_empty_column() -> None:
    assert searched([], b"abc") == []
    assert searched([b"abc"] * 9, b"abc", 4, 4) == []
    assert searched([b"", b"", b""], b"abc") == []
