"""Splicing changes into a listing gives the same as building it anew."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_core.errors import InvalidListing
from broker_core.listing.changes import version_splice
from broker_core.listing.changes.version_splice import ListingChange, splice, splicing
from broker_core.listing.chunks.chunk import Chunk
from broker_core.listing.listing import data_of
from broker_core.listing.listing_hash import TextCrc, topics_hash, utf16_key
from broker_core.names import Mode
from broker_core.patterns import compile_pattern
from tests.support.chunks import tiny_chunks
from tests.support.topics import assert_listing, full_names, listing_of, persistent, visible

#: Bytes of a chunk of the second round.
TINY_CHUNK = 1000


@given(st.sampled_from(Mode), st.data())
def test_changes_make_what_building_makes(mode: Mode, data: st.DataObject) -> None:
    names = data.draw(st.lists(full_names(mode), max_size=20))
    listing, shown = listing_of(names, mode), visible(names)
    for _ in range(data.draw(st.integers(1, 3))):
        known = st.sampled_from(shown) if shown else full_names(mode)
        removed = data.draw(st.lists(st.one_of(known, known, full_names()), max_size=5))
        added = data.draw(st.lists(st.one_of(full_names(mode), full_names(mode), known), max_size=5))
        listing = listing.with_changes(removed, added)
        # What is removed and added is there.
        shown = visible([*(name for name in shown if name not in removed), *added])
        assert_listing(listing, shown)


@pytest.mark.parametrize(
    ("before", "removed", "added", "after"),
    [
        ([], [], ["a"], ["a"]),
        (["a"], ["a"], [], []),
        (["a"], ["a"], ["a"], ["a"]),
        (["a"], ["b"], ["a"], ["a"]),
        (["b"], [], ["a", "c"], ["a", "b", "c"]),
        (["b"], ["b"], ["a", "c"], ["a", "c"]),
        (["a", "b", "c"], ["a", "c"], [], ["b"]),
        (["a"], [], ["__change_events", "a-partition-0"], ["a", "a-partition-0"]),
        (
            ["x-partition-0", "x-partition-2"],
            [],
            ["x-partition-1", "x"],
            ["x", *(f"x-partition-{i}" for i in range(3))],
        ),
        (["😀", "\uffee"], ["\uffee"], ["\ue000", "𐀀"], ["𐀀", "😀", "\ue000"]),
        (["a-partition-1", "a-a"], [], ["a-partition-0"], ["a-a", "a-partition-0", "a-partition-1"]),
    ],
)
def test_single_changes(before: list[str], removed: list[str], added: list[str], after: list[str]) -> None:
    listing = listing_of(persistent(*before)).with_changes(persistent(*removed), persistent(*added))
    assert_listing(listing, persistent(*after))


def test_nothing_to_change_is_the_same_listing() -> None:
    listing = listing_of(persistent("a", "b"))
    assert listing.with_changes([], []) is listing
    assert listing.with_changes(persistent("c"), persistent("a")) is listing
    assert (
        listing.with_changes(["persistent://other/n/a", "nonsense"], persistent("__change_events")) is listing
    )


@pytest.mark.parametrize(
    "bad", ["persistent://t/other/a", "non-persistent://t/n/a", "a", "persistent://t/n/"]
)
def test_what_is_added_must_belong_there(bad: str) -> None:
    listing = listing_of(persistent("a"), Mode.PERSISTENT)
    with pytest.raises(InvalidListing):
        listing.with_changes([], [bad])


def test_the_listing_before_stays_as_it_was() -> None:
    names = persistent("a", "b", "c")
    listing = listing_of(names)
    found = listing.matching(compile_pattern("t/n/[ab]"))
    after = listing.with_changes(persistent("a"), persistent("bb"))
    assert_listing(listing, names)
    assert found.names.to_pylist() == names[:2]
    assert after.matching(compile_pattern("t/n/[ab]")).names.to_pylist() == names[1:2]


def test_newlines_come_and_go() -> None:
    listing = listing_of(persistent("a", "ab"))
    pattern = compile_pattern("t/n/a.*")
    more = listing.with_changes([], persistent("a\nb"))
    assert len(more.matching(pattern)) == 2
    assert len(more.with_changes(persistent("a\nb"), []).matching(pattern)) == 2


@pytest.mark.parametrize("partitions", [0, 7])
def test_many_changes_at_once(partitions: int) -> None:
    chance = random.Random(partitions)
    every = persistent(*(f"{number:05d}" for number in range(12_000)))
    if partitions:
        every = [
            f"{name}{'-😀' if index % 50 == 0 else ''}-partition-{index % 7}"
            for index, name in enumerate(every)
        ]
    names = set(chance.sample(every, 6000))
    listing = listing_of(sorted(names))
    for count in (1500, 2500):  # spliced, and built anew
        removed, added = chance.sample(every, count), chance.sample(every, count)
        names = (names - set(removed)) | set(added)
        listing = listing.with_changes(removed, added)
        assert listing.names.to_pylist() == sorted(names, key=utf16_key)
        assert listing.topics_hash == topics_hash(names)
        rebuilt = listing_of(sorted(names))
        assert bytes(listing.all().body()) == bytes(rebuilt.all().body())
        for text in ("t/n/.*7", "t/n/01.*", "t/n/.*😀"):
            found = listing.matching(compile_pattern(text))
            assert found.names.equals(rebuilt.matching(compile_pattern(text)).names)
            assert found.topics_hash == topics_hash(found.names.to_pylist())


@given(st.lists(full_names(), max_size=12), st.lists(full_names(), max_size=6), st.data())
def test_where_a_name_is_or_would_be(names: list[str], others: list[str], data: st.DataObject) -> None:
    listing, shown = listing_of(names), visible(names)
    asked = data.draw(st.permutations([*others, *names[:4]]))
    rows, present = listing.locate(pa.array(asked))
    for name, row, is_there in zip(asked, rows.tolist(), present.tolist(), strict=True):
        assert is_there == (name in shown)
        keys = [utf16_key(each) for each in shown]
        assert row == sum(key < utf16_key(name) for key in keys)


def test_the_hash_after_a_change_asks_new_chunks_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    with tiny_chunks(1000):
        names = persistent(*(f"{number:04}" for number in range(400)))
        listing = listing_of(names)
        assert listing.topics_hash == topics_hash(names)
        asked: list[Chunk] = []
        whole = Chunk.__dict__["crc"].fget

        def counted(chunk: Chunk) -> TextCrc:
            asked.append(chunk)
            found: TextCrc = whole(chunk)
            return found

        monkeypatch.setattr(Chunk, "crc", property(counted))
        for name in ("0100x", "0399x", "", "0200" + "y" * 300):
            before = data_of(listing).chunks
            listing = listing.with_changes([], persistent(f"0{name}"))
            names = sorted({*names, *persistent(f"0{name}")})
            assert listing.topics_hash == topics_hash(names)
            new = set(data_of(listing).chunks) - set(before)
            assert set(asked) == new
            assert len(new) < len(before) // 3
            asked.clear()


def test_small_chunks_are_joined_when_names_go() -> None:
    names = persistent(*(f"topic-{number:04d}" for number in range(600)))
    with tiny_chunks(1000):
        listing = listing_of(names, Mode.PERSISTENT)
        before = len(data_of(listing).chunks)
        while len(names) > 60:
            gone, names = names[::10], [name for row, name in enumerate(names) if row % 10]
            listing = listing.with_changes(gone, [])
    sizes = [chunk.fields_size for chunk in data_of(listing).chunks]
    assert_listing(listing, names)
    assert before > 2 * len(sizes)
    assert max(sizes) <= 2000
    assert min(sizes) >= 250


def test_all_properties_stay_where_names_are_put_in_order_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(version_splice, "_MANY", 3)
    changed = ListingChange([], persistent("a", "b"), {"one": ["1", "2"], "two": ["3", "4"]})
    data = splice(data_of(listing_of([], Mode.PERSISTENT)), changed)
    more = persistent(*(f"c{number}" for number in range(5)))
    data = splice(data, ListingChange(persistent("a"), more, {"one": ["1"] * 5, "two": ["4"] * 5}))
    (chunk,) = data.chunks
    assert chunk.properties["one"].column().to_pylist() == ["2", *["1"] * 5]
    assert chunk.properties["two"].column().to_pylist() == ["4"] * 6


@pytest.mark.parametrize("with_room", ["none", "in front", "behind"])
def test_a_small_chunk_stays_beside_chunks_that_have_no_room_for_it(with_room: str) -> None:
    names = persistent(*(f"topic-{number:04d}" for number in range(600)))
    with tiny_chunks(1000):
        data = data_of(listing_of(names, Mode.PERSISTENT))
        front, small, behind = (names[data.start(number) : data.start(number + 1)] for number in range(8, 11))
        more = [f"{name}+" for name in (*front[1:-1], *behind[1:-1])]
        if with_room == "in front":
            more = more[len(front) - 2 :]
        if with_room == "behind":
            more = more[: len(front) - 2]
        data = splice(data, ListingChange([], more))
        before = data.chunks
        after = splice(data, ListingChange(small[6:], []))
    left = sorted({*names, *more} - set(small[6:]), key=utf16_key)
    assert after.names(after.pieces(0, after.size)).to_pylist() == left
    gone = [number for number, chunk in enumerate(before) if chunk not in after.chunks]
    assert gone == {"none": [9], "in front": [8, 9], "behind": [9, 10]}[with_room], "others are shared"
    assert len(after.chunks) == len(before) - (with_room != "none")


def test_a_splice_has_a_step_for_each_chunk_and_says_which_is_quick() -> None:
    names = persistent(*(f"topic-{number:04d}" for number in range(600)))
    with tiny_chunks(1000):
        data = data_of(listing_of(names, Mode.PERSISTENT))
        few = ListingChange([names[0], names[300]], persistent("topic-0599x"))
        steps = splicing(data, few)
        assert [*steps] == [True] * 3
        first = data.chunks[0].size
        steps = splicing(data, ListingChange(names[1:first], []))
        assert [*steps] == [True, False], "what is left of it is joined with another"
        one = data_of(listing_of(names[:3], Mode.PERSISTENT))
        assert [*splicing(one, ListingChange(names[:1], []))] == [True], "there is no other"
    assert [*splicing(data, ListingChange([], []))] == []


def test_values_that_topics_have_already_change_nothing() -> None:
    names = persistent("a", "b", "c")
    values = {"one": ["1", "2", None], "two": ["x", None, "x"]}
    data = splice(data_of(listing_of([], Mode.PERSISTENT)), ListingChange([], names, values))
    assert splice(data, ListingChange(persistent("d"), names, values)) is data
    (before,) = data.chunks
    (after,) = splice(data, ListingChange([], names[1:2], {"one": ["2"], "two": ["y"]})).chunks
    assert after.properties["one"] is before.properties["one"]
    assert after.properties["two"].column().to_pylist() == ["x", "y", "x"]
    assert after.fields is before.fields
