"""Removing partition suffixes from a column gives the same as name by name."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_core.names.name_columns import partitioned_local_names
from broker_core.names.partitions import partitioned_local_name
from tests.support.topics import local_names

_PIECES = [
    *("-partition-", "partition-", "-partition", "-", "0", "1", "12", "00", "2147483647", "2147483648"),
    *("2147483640", "9999999999", "4294967296", "10000000000", "a", "é", "\n", "٣", "₂", "😀", " "),
]
_NAMES = st.one_of(local_names(), st.lists(st.sampled_from(_PIECES), min_size=1, max_size=5).map("".join))


@given(st.lists(_NAMES, max_size=8), st.integers(0, 2), st.integers(0, 2))
def test_the_column_says_what_one_name_says(names: list[str], head: int, tail: int) -> None:
    column = pa.array(names, pa.large_string())[head : max(len(names) - tail, head)]
    stripped = partitioned_local_names(column)
    stripped.validate(full=True)
    assert stripped.type == pa.large_string()
    assert stripped.to_pylist() == [partitioned_local_name(name) for name in column.to_pylist()]


@pytest.mark.parametrize("name", _PIECES)
def test_names_beside_each_other_stay_apart(name: str) -> None:
    """A suffix may seem to begin in one name and end in the next."""
    names = [
        "x-part",
        "ition-1",
        "x-partition-",
        "1",
        name,
        f"x-partition-{name}",
        f"-partition-{name}",
        name,
    ]
    stripped = partitioned_local_names(pa.array(names, pa.large_string()))
    assert stripped.to_pylist() == [partitioned_local_name(each) for each in names]


def test_a_column_without_partitions_is_not_copied() -> None:
    column = pa.array(["a", "b-partition-x", "partition-1"], pa.large_string())
    assert partitioned_local_names(column) is column
    nothing = pa.array([], pa.large_string())
    assert partitioned_local_names(nothing) is nothing


def test_many() -> None:
    names = [f"topic-{number // 7}-partition-{number % 7}" for number in range(20_000)]
    stripped = partitioned_local_names(pa.array(names, pa.large_string()))
    assert stripped.to_pylist() == [f"topic-{number // 7}" for number in range(20_000)]
