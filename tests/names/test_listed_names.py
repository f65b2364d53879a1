from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_core.names.listed_names import NOTHING, PLAIN, ListedNames, merge_listed

INDICES = st.frozensets(st.integers(-1, 12) | st.integers(0, 2**31 - 1))


def of(indices: frozenset[int]) -> ListedNames:
    """Built one by one, as a file may name them."""
    listed = NOTHING
    for index in indices:
        listed |= ListedNames.of(index)
    return listed


def content(listed: ListedNames) -> frozenset[int]:
    return frozenset([-1] if listed.plain else []) | frozenset(listed.indices())


@given(INDICES)
def test_it_is_a_set_of_indices(indices: frozenset[int]) -> None:
    listed = of(indices)

    assert content(listed) == indices
    assert len(listed) == len(indices)
    assert bool(listed) == bool(indices)
    assert all(index in listed for index in indices)
    assert listed.partitions == max(indices, default=-1) + 1
    assert ListedNames.parse(str(listed)) == listed
    assert ListedNames.of_indices(index for index in indices if index >= 0).ranges == listed.ranges


@given(INDICES, INDICES)
def test_union_and_difference_are_those_of_sets(one: frozenset[int], other: frozenset[int]) -> None:
    assert content(of(one) | of(other)) == one | other
    assert content(of(one).without(of(other))) == one - other
    assert merge_listed(str(of(one)), str(of(other))) == str(of(one) | of(other))
    assert (3 in of(one)) == (3 in one)


def test_the_compact_form() -> None:
    listed = ListedNames.partitioned(3) | ListedNames.of(10) | PLAIN
    assert str(listed) == "*,0-2,10"
    assert list(listed.names("orders-eu")) == [
        "orders-eu",
        "orders-eu-partition-0",
        "orders-eu-partition-1",
        "orders-eu-partition-2",
        "orders-eu-partition-10",
    ]
    assert str(NOTHING) == ""
    assert ListedNames.parse("") == NOTHING
    assert ListedNames.partitioned(0) == PLAIN
    assert "0" not in listed


@pytest.mark.parametrize(
    ("index", "name"), [(-1, "a"), (0, "a-partition-0"), (2**31 - 1, "a-partition-2147483647")]
)
def test_one_name_is_listed_by_its_index(index: int, name: str) -> None:
    assert list(ListedNames.of(index).names("a")) == [name]
