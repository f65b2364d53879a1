"""Sorting a column eight bytes at a time: the same order as that of the bytes."""

from __future__ import annotations

import random

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from broker_core.names.hash_order import sorted_rows

# Few characters and lengths around a word's, so that names share words and end at their edges.
_NAMES = st.one_of(
    st.text(st.sampled_from("abé"), max_size=20),
    st.sampled_from(
        ["a" * 7, "a" * 8, "a" * 9, "a" * 16, "a" * 17, "a" * 16 + "b", "\ue000", "😀", "\xff" * 8]
    ),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12),
)


@given(st.lists(_NAMES, max_size=30), st.sampled_from(["", "abcdefgh", "abcdefghi"]), st.integers(0, 2))
def test_the_order_is_that_of_the_bytes(names: list[str], prefix: str, skipped: int) -> None:
    names = [prefix + name for name in names]
    column = pa.array(["x", *names], pa.large_string())[1 + skipped :]
    rows = sorted_rows(column).tolist()
    assert sorted(rows) == list(range(len(column)))
    values = column.to_pylist()
    assert [values[row] for row in rows] == sorted(values, key=str.encode)


def test_bytes_that_are_no_text_sort_too() -> None:
    values = [b"\xff\xfe", b"\xfe", b"a", b"", b"\xff", b"a\xff", b"\xff" * 9, b"\xff" * 8]
    rows = sorted_rows(pa.array(values, pa.large_binary())).tolist()
    assert [values[row] for row in rows] == sorted(values)


def test_many_names_of_all_kinds() -> None:
    chance = random.Random(3)
    names = [
        f"sensors/building-{chance.randrange(9)}/device-{chance.randrange(10**5):06d}" for _ in range(20_000)
    ]
    names += [f"{chance.getrandbits(chance.choice([8, 64, 200])):x}" for _ in range(20_000)]
    rows = sorted_rows(pa.array(names, pa.large_string())).tolist()
    assert [names[row] for row in rows] == sorted(names)


def test_long_names_that_differ_at_their_ends() -> None:
    names = ["x" * 30_000 + tail for tail in ("b", "a", "", "ab", "aa", "a")]
    rows = sorted_rows(pa.array(names, pa.large_string())).tolist()
    assert [names[row] for row in rows] == sorted(names)
