"""The order of pages over a listing, compared with the positions of its names one by one."""

from __future__ import annotations

import random

import numpy as np
import pytest

from broker_core import Listing, Mode, Position
from broker_core.listing.page_order import PageOrder
from broker_core.patterns import compile_pattern

#: Bases whose order differs by full names, by UTF-8 and by UTF-16; some look like partitions of others.
BASES = ["a", "a!", "a-", "b", "b-partition-1", "b-partition-x", "é", "\U0001f600", "\uffee", "z" * 300]

#: Bytes of a chunk of the second round.
TINY_CHUNK = 2000


def names_of(seed: int, count: int) -> list[str]:
    chosen = random.Random(seed)
    names = set()
    for _ in range(count):
        base = chosen.choice(BASES) + chosen.choice(["", "", str(chosen.randrange(5))])
        suffix = chosen.choice(["", f"-partition-{chosen.randrange(12)}", f"-partition-{2**31 - 1}"])
        names.add(f"{chosen.choice(['persistent', 'non-persistent'])}://t/n/{base}{suffix}")
    return list(names)


@pytest.mark.parametrize("count", [0, 1, 2, 30, 400])
def test_the_places_are_those_of_the_sorted_positions(count: int) -> None:
    names = names_of(count, count)
    listing = Listing.from_names("t/n", Mode.ALL, names)
    order = PageOrder.of(listing)
    expected = sorted(map(Position.of, names))
    places = np.arange(len(listing))
    assert order.names_at(listing, places).to_pylist() == [each.name for each in expected]
    bases = [each.base for each in expected]
    highest = {each.base: each.partition + 1 for each in expected}
    assert order.partitions_at(places).tolist() == [highest[base] for base in bases]
    asked = [*expected, *(Position.of(name) for name in names_of(count + 1, 50))]
    asked += [Position(each.base, number) for each in expected for number in (-1, 0, 3, 2**31 - 1)]
    for start in asked:
        assert order.find(listing, start) == sum(each < start for each in expected)
    assert order.find(listing, None) == 0


def test_without_partitions_the_order_is_the_listings_own() -> None:
    names = [f"persistent://t/n/{each}" for each in ("a", "b", "d", "-partition-1", "e-partition-01")]
    listing = Listing.from_names("t/n", Mode.PERSISTENT, names)
    order = PageOrder.of(listing)
    assert (order.rows, order.numbers, order.nbytes) == (None, None, 0)
    for base, place in [("a", 1), ("b", 2), ("c", 3), ("d", 3), ("z", 5), ("-partition-1", 0)]:
        assert order.find(listing, Position(f"persistent://t/n/{base}")) == place
    # A partition of a topic that is listed by its plain name alone is behind that.
    assert order.find(listing, Position("persistent://t/n/b", 0)) == 3
    assert order.find(listing, Position("persistent://t/n/c", 0)) == 3


@pytest.mark.parametrize("pattern", [None, "t/n/b.*", ".*[02468]", "t/n/nothing"])
@pytest.mark.parametrize("size", [60, 100_000])
def test_a_walk_gives_the_places_of_a_selection(pattern: str | None, size: int) -> None:
    names = [f"persistent://t/n/{'abc'[number % 3]}{number}" for number in range(size // 2)]
    names += [f"{name}-partition-{number % 7}" for number, name in enumerate(names)]
    listing = Listing.from_names("t/n", Mode.PERSISTENT, names)
    order = PageOrder.of(listing)
    selection = listing.all() if pattern is None else listing.matching(compile_pattern(pattern))
    all_places = np.arange(len(listing))
    rows = set(selection.row_array.tolist())
    expected = [place for place, row in enumerate(order.rows_at(all_places).tolist()) if row in rows]
    for start in (0, len(listing) // 3, len(listing)):
        walked = [place for places in order.walk(selection, start, 10) for place in places.tolist()]
        assert walked == [place for place in expected if place >= start]


def test_its_memory_is_counted() -> None:
    names = [f"persistent://t/n/x-partition-{number}" for number in range(1000)]
    listing = Listing.from_names("t/n", Mode.PERSISTENT, names)
    order = PageOrder.of(listing)
    assert order.nbytes == 1000 * 12 + 4
    assert PageOrder.build_bytes(listing) > order.nbytes
