"""The order of pages of a column of names, compared with their positions one by one."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from broker_core import Position
from broker_core.listing.pages.page_walk import first_out_of_order, in_page_order, topic_ends

#: Bases whose order differs by full names, by UTF-8 and by UTF-16; some look like partitions of others.
BASES = ["a", "a!", "a-", "b", "b-partition-1", "b-partition-x", "é", "\U0001f600", "\uffee", "z" * 300]


def names_of(seed: int, count: int) -> list[str]:
    chosen = random.Random(seed)
    names = set()
    for _ in range(count):
        base = chosen.choice(BASES) + chosen.choice(["", "", str(chosen.randrange(5))])
        suffix = chosen.choice(["", f"-partition-{chosen.randrange(12)}", f"-partition-{2**31 - 1}"])
        names.add(f"{chosen.choice(['persistent', 'non-persistent'])}://t/n/{base}{suffix}")
    return list(names)


def column(names: list[str]) -> pa.LargeStringArray:
    return pa.array(names, pa.large_string())


@pytest.mark.parametrize("count", [0, 1, 2, 30, 400])
def test_names_are_put_in_the_order_of_their_positions(count: int) -> None:
    names = names_of(count, count)
    ordered = [each.name for each in sorted(map(Position.of, names))]
    assert in_page_order(column(names)).to_pylist() == ordered
    assert in_page_order(column(ordered)).to_pylist() == ordered
    plain = [name for name in names if "-partition-" not in name]
    assert in_page_order(column(plain)).to_pylist() == [name for name in ordered if name in set(plain)]


def test_the_first_name_out_of_order() -> None:
    ordered = [each.name for each in sorted(map(Position.of, names_of(7, 100)))]
    assert first_out_of_order(column([])) is None
    assert first_out_of_order(column(ordered)) is None
    for at in range(len(ordered) - 1):
        swapped = [*ordered[:at], ordered[at + 1], ordered[at], *ordered[at + 2 :]]
        # One of the two is wrong: the exchanged ones, or the one in front of them.
        assert first_out_of_order(column(swapped)) == at
        assert first_out_of_order(column([*ordered[: at + 1], *ordered[at:]])) == at


def test_the_last_of_equal_neighbours() -> None:
    assert topic_ends(column([])).tolist() == []
    assert topic_ends(column(["a"])).tolist() == [0]
    assert topic_ends(column(["a", "a", "b", "a", "c", "c"])).tolist() == [1, 2, 3, 5]
