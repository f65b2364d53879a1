"""Listings: accepted and refused input, and exactly the given names."""

from __future__ import annotations

import gc
import random
import weakref
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_core.errors import InvalidListing, InvalidName
from broker_core.listing.listing import Listing, data_of, part_of
from broker_core.listing.listing_data import ListingData, Pieces
from broker_core.listing.listing_hash import topics_hash
from broker_core.memory.bounded_cache import BoundedCache
from broker_core.names import MAX_NAME_BYTES, Mode, NamespaceName
from broker_core.patterns import compile_pattern
from tests.support.chunks import tiny_chunks
from tests.support.topics import NAMESPACE, assert_listing, full_names, persistent, visible

_MODES = st.sampled_from(Mode)
_LISTS = _MODES.flatmap(lambda mode: st.tuples(st.just(mode), st.lists(full_names(mode), max_size=25)))

#: Bytes of a chunk of the second round.
TINY_CHUNK = 400


@given(_LISTS)
def test_a_listing_is_exactly_its_names(drawn: tuple[Mode, list[str]]) -> None:
    mode, names = drawn
    listing = Listing.from_names(NAMESPACE, mode, names)
    assert (listing.namespace, listing.mode) == (NAMESPACE, mode)
    assert_listing(listing, visible(names))


@given(_LISTS, st.integers(0, 3), st.booleans())
def test_any_column_of_names_gives_the_same(drawn: tuple[Mode, list[str]], cut: int, large: bool) -> None:
    mode, names = drawn
    kind = pa.large_string() if large else pa.string()
    column = pa.array(["nonsense", *names], kind)[1:]
    for given_names in (
        column,
        column.dictionary_encode(),
        pa.chunked_array([column[:cut], column[cut:]]),
        column.cast(pa.string_view()),
        tuple(names),
        sorted(names),
    ):
        assert Listing.from_names("t/n", mode, given_names).names.to_pylist() == visible(names)


def test_both_domains_in_the_order_of_the_hash() -> None:
    names = ["persistent://t/n/a", "non-persistent://t/n/a", "persistent://t/n/\uffee", "persistent://t/n/😀"]
    listing = Listing.from_names(NAMESPACE, Mode.ALL, names)
    assert listing.names.to_pylist() == [names[1], names[0], names[3], names[2]]
    forms = [chunk.forms.between(0, chunk.size).to_pylist() for chunk in data_of(listing).chunks]
    assert forms == [["t/n/a"], ["t/n/a", "t/n/\uffee", "t/n/😀"]]
    assert listing.topics_hash == topics_hash(names)


def test_an_empty_listing() -> None:
    listing = Listing.from_names(NAMESPACE, Mode.ALL, [])
    assert_listing(listing, [])
    assert len(listing.matching(compile_pattern("t/n/.*[a-z]"))) == 0
    assert listing.topics_hash == "00000000"
    assert_listing(Listing.from_columns(NAMESPACE, Mode.PERSISTENT), [])


@pytest.mark.parametrize(
    "name",
    [
        *(
            "persistent://t/other/a",
            "non-persistent://t/n/a",
            "t/n/a",
            "",
            "persistent://t/n/",
            "persistent://t/n/a/b",
        ),
        *(
            "persistent://t/n/a\0",
            "persistent://t/n/" + "x" * (MAX_NAME_BYTES + 1),
            "persistent://t/n/\ud800",
        ),
        *(None, 7, b"persistent://t/n/a"),
    ],
    ids=lambda name: repr(name)[:40],
)
def test_one_bad_name_is_an_error(name: Any) -> None:
    with pytest.raises(InvalidListing):
        Listing.from_names(NAMESPACE, Mode.PERSISTENT, [*persistent("a"), name])


def test_a_bad_namespace_is_an_error() -> None:
    with pytest.raises(InvalidName):
        Listing.from_names("t/n/x", Mode.PERSISTENT, [])


def test_columns_of_local_names() -> None:
    column = pa.array(["b", "a", "b", "__change_events"], pa.large_string())
    other = pa.array(["c"])
    listing = Listing.from_columns(NAMESPACE, Mode.ALL, column, other)
    assert listing.names.to_pylist() == ["non-persistent://t/n/c", *persistent("a", "b")]
    assert Listing.from_columns(NAMESPACE, Mode.PERSISTENT, column, other).names.to_pylist() == persistent(
        "a", "b"
    )
    assert Listing.from_columns(NAMESPACE, Mode.NON_PERSISTENT, column, other).names.to_pylist() == [
        "non-persistent://t/n/c"
    ]
    # What the mode does not list is not looked at.
    bad = pa.array([""], pa.large_string())
    assert len(Listing.from_columns(NAMESPACE, Mode.NON_PERSISTENT, bad, other)) == 1


@pytest.mark.parametrize(
    "bad",
    [
        pa.array(["a", ""], pa.large_string()),
        pa.array(["a/b"], pa.large_string()),
        pa.array(["a", None], pa.large_string()),
        pa.array([1]),
        pa.LargeStringArray.from_buffers(1, pa.py_buffer(np.array([0, 1])), pa.py_buffer(b"\xff")),
    ],
    ids=lambda value: type(value).__name__,
)
def test_columns_are_checked(bad: Any) -> None:
    with pytest.raises(InvalidListing):
        Listing.from_columns(NAMESPACE, Mode.PERSISTENT, bad)


def test_system_topics_of_the_system_namespace() -> None:
    system = NamespaceName.parse("pulsar/system")
    names = [
        f"persistent://pulsar/system/{name}" for name in ("transaction_coordinator_assign-partition-0", "x")
    ]
    names.append("non-persistent://pulsar/system/__transaction_log_1")
    assert Listing.from_names(system, Mode.ALL, names).names.to_pylist() == [names[2], names[1]]


@given(_LISTS, st.data())
def test_positions_of_names(drawn: tuple[Mode, list[str]], data: st.DataObject) -> None:
    mode, names = drawn
    listing, shown = Listing.from_names(NAMESPACE, mode, names), visible(names)
    asked = data.draw(st.lists(st.one_of(full_names(), st.sampled_from([*names, "", "x"])), max_size=8))
    expected = [shown.index(name) if name in shown else -1 for name in asked]
    found = listing.positions(pa.array(["-", *asked], pa.large_string())[1:])
    assert found.dtype == np.int64
    assert found.tolist() == expected


def test_positions_of_many_names() -> None:
    names = persistent(*(f"{number:05d}" for number in range(5000)))
    listing = Listing.from_names(NAMESPACE, Mode.PERSISTENT, names)
    asked = random.Random(1).choices([*names, *persistent("x", "00001x")], k=4000)
    places = {name: place for place, name in enumerate(names)}
    expected = [places.get(name, -1) for name in asked]
    assert listing.positions(pa.array(asked, pa.large_string())).tolist() == expected


def test_a_slice_says_its_hash() -> None:
    names = persistent("a", "b", "c", "d")
    listing = Listing.from_names(NAMESPACE, Mode.PERSISTENT, names)
    assert data_of(listing).known_range_hash(0, 4) is None
    assert data_of(listing).known_range_hash(2, 2) == "00000000"
    assert data_of(listing).range_hash(1, 3) == topics_hash(names[1:3])
    assert data_of(listing).range_hash(0, 4) == data_of(listing).known_range_hash(0, 4) == topics_hash(names)


def test_memory_is_counted_and_answers_have_their_room() -> None:
    names = persistent(*(f"topic-{number:06d}" for number in range(4000)))
    listing = Listing.from_names(NAMESPACE, Mode.PERSISTENT, names)
    text = sum(map(len, names))
    assert text < data_of(listing).column_bytes < 2 * text
    before = listing.nbytes
    for number in range(60):
        listing.matching(compile_pattern(f"t/n/.*{number:03d}.*[0-9]"))
    data = data_of(listing)
    memos: list[BoundedCache[Any, Any]] = [data.memo, *(chunk.memo for chunk in data.chunks)]
    assert all(memo.nbytes <= memo.limit for memo in memos)
    assert len(data.memo) > 10
    assert data.column_bytes + sum(memo.limit for memo in memos) <= listing.nbytes == before


def test_an_answer_is_remembered_by_the_pattern_without_its_scheme() -> None:
    listing = Listing.from_names(NAMESPACE, Mode.PERSISTENT, persistent("a1", "a2", "b"))
    found = listing.matching(compile_pattern("t/n/a[0-9]"))
    again = listing.matching(compile_pattern("persistent://t/n/a[0-9]"))
    assert part_of(again) is part_of(found)
    assert again.pattern == "t/n/a[0-9]"
    data_of(listing).memo.close()
    assert part_of(listing.matching(compile_pattern("t/n/a[0-9]"))) is not part_of(found)


def test_a_listing_is_freed_with_its_last_user_whatever_it_remembers() -> None:
    listing = Listing.from_names(NAMESPACE, Mode.PERSISTENT, persistent("a", "b", "c"))
    assert len(listing.matching(compile_pattern("t/n/[ac]"))) == 2
    freed = weakref.ref(listing)
    gc.disable()
    try:
        del listing
        assert freed() is None
    finally:
        gc.enable()


def test_a_listing_shows_what_it_is() -> None:
    listing = Listing.from_names(NAMESPACE, Mode.PERSISTENT, persistent("a"))
    assert repr(listing) == "<Listing of t/n PERSISTENT: 1 topic>"
    assert repr(listing.all()) == f"<Selection of 1 of {listing!r}>"


def test_the_difference_of_two_versions_is_found_without_what_they_share(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = persistent(*(f"{number:05}" for number in range(3000)))
    with tiny_chunks(2000):
        before = Listing.from_names(NAMESPACE, Mode.ALL, names)
        after = before.with_changes(names[70:72], ["non-persistent://t/n/x", *persistent("00100a", "zz")])
    read: list[int] = []
    all_names = ListingData.names

    def counted(data: ListingData, pieces: Pieces) -> pa.LargeStringArray:
        read.append(len(pieces))
        return all_names(data, pieces)

    monkeypatch.setattr(ListingData, "names", counted)
    added, gone = after.difference(before)
    assert sum(read) <= 20
    monkeypatch.undo()
    assert added.names.to_pylist() == ["non-persistent://t/n/x", *persistent("00100a", "zz")]
    assert gone.names.to_pylist() == names[70:72]
    assert [len(each) for each in before.difference(after)] == [2, 3]
    other = Listing.from_names(NAMESPACE, Mode.ALL, names)
    assert [len(each) for each in other.difference(before)] == [0, 0]
