"""Blocks of pages, compared with the sorted positions of the same names."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_core import Listing, Mode, Position, Selection
from broker_core.listing.pages import page_walk
from broker_core.listing.pages.names_of_topic import NameSearch
from broker_core.listing.pages.page_walk import PageNames, PageStart, PageWalk
from broker_core.patterns import compile_pattern
from tests.listing.pages.test_page_order import names_of

#: Bytes of a chunk of the second round.
TINY_CHUNK = 200

#: What names are made of: prefixes of each other and of partitions, characters that sort differently in UTF-16.
WORDS = [
    "a",
    "-",
    "!",
    "-x",
    "x",
    "-partition",
    "-partition-",
    "-partition-1",
    "-partition-1x",
    "0",
    "1",
    "11",
]
WORDS += ["-partition-01", "\U0001f600", "\uffee", "é"]
LOCALS = st.builds(
    lambda words, number: "".join(words) + ("" if number is None else f"-partition-{number}"),
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=5),
    st.none() | st.integers(0, 12) | st.integers(0, 2**31 - 1),
)
FULL = st.builds("{}://t/n/{}".format, st.sampled_from(["persistent", "non-persistent"]), LOCALS)


def walked(selection: Selection, start: Position | None, count: int) -> list[PageNames]:
    walk = PageWalk(selection)
    place: PageStart | None = PageStart.of(start)
    blocks = []
    while place is not None:
        block = walk.block(place, count)
        assert block.nbytes >= 0
        found, place = block.read()
        blocks.append(found)
    return blocks


def check(selection: Selection, start: Position | None, count: int) -> None:
    blocks = walked(selection, start, count)
    everything = sorted(map(Position.of, selection.names.to_pylist()))
    expected = [each for each in everything if start is None or each >= start]
    names = [name for block in blocks for name in block.names.to_pylist()]
    assert names == [each.name for each in expected]
    assert [topic for block in blocks for topic in block.topics.to_pylist()] == [
        each.base for each in expected
    ]
    highest = {each.base: each.partition + 1 for each in everything}
    partitions = [count for block in blocks for count in block.partitions.tolist()]
    assert partitions == [highest[each.base] for each in expected]
    rows = [row for block in blocks for row in block.rows.tolist()]
    of_row = dict(zip(selection.row_array.tolist(), selection.names.to_pylist(), strict=True))
    assert [of_row[row] for row in rows] == names


def starts(names: Sequence[str]) -> list[Position | None]:
    positions = [Position.of(name) for name in names]
    return [
        None,
        *positions,
        *(Position(each.base, number) for each in positions for number in (-1, 0, 3, 2**31 - 1)),
    ]


@given(data=st.data(), names=st.sets(FULL, max_size=60))
def test_any_names_in_blocks_of_any_size(data: st.DataObject, names: set[str]) -> None:
    listing = Listing.from_names("t/n", Mode.ALL, sorted(names))
    listed = listing.names.to_pylist()  # without system topics
    others = data.draw(st.lists(FULL, max_size=3))
    start = data.draw(st.sampled_from(starts([*listed, *others])))
    count = data.draw(st.integers(1, 70))
    check(listing.all(), start, count)
    low, high = sorted(data.draw(st.tuples(*[st.integers(0, len(listed))] * 2)))
    check(listing.range(low, high), start, count)
    rows = sorted(data.draw(st.sets(st.integers(0, max(len(listed) - 1, 0)), max_size=len(listed))))
    check(listing.rows(rows[: len(listed)]), start, count)


@given(data=st.data(), names=st.sets(FULL, max_size=60))
def test_the_position_of_a_number_is_that_of_the_sorted_names(data: st.DataObject, names: set[str]) -> None:
    listing = Listing.from_names("t/n", Mode.ALL, sorted(names))
    rows = sorted(data.draw(st.sets(st.integers(0, max(len(listing) - 1, 0)), max_size=len(listing))))
    for selection in (listing.all(), listing.rows(rows[: len(listing)])):
        walk = PageWalk(selection)
        everything = sorted(map(Position.of, selection.names.to_pylist()))
        assert [walk.position(number) for number in range(len(everything))] == everything
        assert walk.position(len(everything)) is None


def test_a_position_within_very_many_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_walk, "_MOST", 50)
    monkeypatch.setattr(page_walk, "_ALL", 20)
    names = [f"persistent://t/n/{name}" for name in ("a", "a-b", "b")]
    names += [f"persistent://t/n/a-partition-{number}" for number in range(200)]
    selection = Listing.from_names("t/n", Mode.ALL, sorted(names)).all()
    everything = sorted(map(Position.of, names))
    walk = PageWalk(selection)
    numbers = [*range(5), *range(5, len(names), 7), *range(len(names) - 3, len(names))]
    assert [walk.position(number) for number in numbers] == [everything[number] for number in numbers]


@pytest.mark.parametrize("count", [2, 30, 1000])
@pytest.mark.parametrize("pattern", [None, "t/n/b.*", ".*[02468]", "t/n/nothing"])
def test_the_names_of_a_pattern(pattern: str | None, count: int) -> None:
    names = names_of(1, 400)
    listing = Listing.from_names("t/n", Mode.ALL, names)
    selection = listing.all() if pattern is None else listing.matching(compile_pattern(pattern))
    for start in random.Random(count).sample(starts(names), 3):
        check(selection, start, count)


@pytest.mark.parametrize("count", [3, 20, 100])
def test_a_topic_of_very_many_partitions_is_read_in_parts(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_walk, "_ALL", 5)
    base = "persistent://t/n/a"
    chosen = random.Random(3)
    names = {f"{base}-partition-{number}" for number in chosen.sample(range(5000), 50)}
    names |= {
        f"{base}{local}" for local in ("", "!", "-b", "-partition-1x", "-partition-12-partition-3", "b")
    }
    names |= {f"{base}-b-partition-{number}" for number in range(10)}
    listing = Listing.from_names("t/n", Mode.PERSISTENT, list(names))
    every = walked(listing.all(), None, count)
    assert max(len(block) for block in every) <= max(2 * count, 10) + 5
    for selection in (listing.all(), listing.range(10, 55), listing.matching(compile_pattern(".*[ab]"))):
        for start in (None, *map(Position.of, chosen.sample(sorted(names), 1)), Position(base, 4999)):
            check(selection, start, count)
    odd = [row for row in range(len(listing)) if row % 3]
    for start in (None, Position(base, 17), Position(f"{base}-a")):
        check(listing.rows(odd), start, count)


def test_few_names_are_looked_at_however_long_the_names_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of the prefixes of such a name could be a topic that has its partitions behind it."""
    names = [f"persistent://t/n/{'-' * 10_000}{number}" for number in range(50)]
    listing = Listing.from_names("t/n", Mode.PERSISTENT, [*names, "persistent://t/n/--partition-4"])
    finds = 0
    as_before = NameSearch.find

    def find(search: NameSearch, name: bytes) -> int:
        nonlocal finds
        finds += 1
        return as_before(search, name)

    monkeypatch.setattr(NameSearch, "find", find)
    found, _ = PageWalk(listing.all()).block(PageStart(), 10).read()
    assert found.names[0].as_py() == "persistent://t/n/--partition-4"
    assert finds < 30


def test_the_bytes_of_a_block_are_known_before_it_is_read() -> None:
    names = [f"persistent://t/n/{'x' * 200}{number:03d}" for number in range(100)]
    walk = PageWalk(Listing.from_names("t/n", Mode.PERSISTENT, names).all())
    block = walk.block(PageStart(), 10)
    assert 10 * len(names[0]) < block.nbytes < 30 * len(names[0])
    assert block.read()[0].names.to_pylist() == names[:10]


def test_some_of_the_names_of_a_block() -> None:
    names = [f"persistent://t/n/a-partition-{number}" for number in range(3)] + ["persistent://t/n/b"]
    found, following = (
        PageWalk(Listing.from_names("t/n", Mode.PERSISTENT, names).all()).block(PageStart(), 9).read()
    )
    assert following is None
    assert found.first(10) is found
    for some in (found.first(2), found.where(pa.array([True, True, False, False]))):
        assert some.names.to_pylist() == names[:2]
        assert some.topics.to_pylist() == ["persistent://t/n/a"] * 2
        assert some.partitions.tolist() == [3, 3]
        assert some.rows.tolist() == [0, 1]
        assert len(some) == 2
