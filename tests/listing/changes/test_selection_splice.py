"""Changing a selection, by names and by positions: the result is that of a search, and shares what is the same."""

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

from broker_core import Listing, Mode
from broker_core.errors import InvalidListing
from broker_core.listing.changes.selection_splice import own_chunks
from broker_core.listing.changes.version_splice import ListingChange, splice
from broker_core.listing.listing import data_of, part_of
from broker_core.listing.listing import listing_of as own_listing_of
from broker_core.listing.listing_part import ListingPart
from broker_core.patterns import TopicsPattern, compile_pattern
from tests.support.chunks import tiny_chunks
from tests.support.examples import examples
from tests.support.mapped import mapped_listing
from tests.support.one_test import in_one_test
from tests.support.topics import assert_selection, full_names, listing_of, persistent, visible

NAMESPACE = "t/n"

#: Bytes of a chunk of the second round.
TINY_CHUNK = 400


PATTERNS = [
    compile_pattern(text) for text in ("t/n/.*", "t/n/[ab].*", ".*[02468]", "t/n/a1", ".*-partition-.*")
]


@given(st.sampled_from(Mode), st.sampled_from(PATTERNS), st.booleans(), st.data())
def test_changes_make_what_a_search_of_the_names_finds(
    mode: Mode, pattern: TopicsPattern, is_mapped: bool, data: st.DataObject
) -> None:
    names = data.draw(st.lists(full_names(mode), max_size=30))
    listing = listing_of(names, mode)
    selection = (mapped_listing(listing) if is_mapped and len(listing) else listing).matching(pattern)
    shown = set(selection.names.to_pylist())
    for _ in range(data.draw(st.integers(1, 3))):
        known = st.sampled_from(sorted(shown)) if shown else full_names(mode)
        removed = data.draw(st.lists(st.one_of(known, full_names()), max_size=5))
        added = listing_of(data.draw(st.lists(st.one_of(full_names(mode), known), max_size=6))).matching(
            pattern
        )
        before, selection = selection, selection.with_changes(removed, added)
        expected = (shown - set(removed)) | set(added.names.to_pylist())
        assert (selection is before) == (expected == shown)
        shown = expected
        assert_selection(selection, visible(shown))
        assert (selection.pattern, selection.listing.mode) == (pattern.text, mode)
        assert selection.is_checked


def test_pieces_without_a_change_are_shared() -> None:
    names = persistent(*(f"{number:05}" for number in range(3000)))
    with tiny_chunks(4096):
        every = mapped_listing(listing_of(names, Mode.PERSISTENT))
        picked = every.rows(range(0, 3000, 3))
        kept = [
            data_of(selection.listing).chunks for selection in (every.all(), picked, every.range(10, 2900))
        ]
        assert data_of(every).column_bytes == 0
        for selection, before in zip((every.all(), picked, every.range(10, 2900)), kept, strict=True):
            size = selection.changes_size(2)
            added = listing_of(persistent("01234x"), Mode.PERSISTENT).all()
            changed = selection.with_changes(persistent("02001", "02001x", "02100"), added)
            after = data_of(changed.listing).chunks
            assert 1 <= len(set(after) - set(before)) <= 3
            assert len(set(after) & set(before)) >= len(before) - 3
            own = sum(held for _, held in changed.listing.memory)
            assert 0 < own < 2 * size
            assert own < data_of(listing_of(names)).column_bytes // 4
            again = changed.with_changes(persistent("01236"), added)
            owners = [{id(owner) for owner, _ in one.listing.memory} for one in (changed, again)]
            assert len(owners[1] - owners[0]) == 1
            assert_selection(
                again,
                sorted(
                    {*selection.names.to_pylist(), *persistent("01234x")}
                    - set(persistent("02001", "02100", "01236"))
                ),
            )


def test_what_two_changes_share_is_freed_with_the_last() -> None:
    first = listing_of(persistent("a", "b"), Mode.PERSISTENT).all()
    second = first.with_changes([], listing_of(persistent("c"), Mode.PERSISTENT).all())
    ((owner, size),) = second.listing.memory
    ended: list[object] = []
    weakref.finalize(owner, ended.append, size)
    third = second.with_changes(persistent("nothing"), first)
    assert third is second
    del owner, third
    gc.collect()
    assert not ended
    del second
    gc.collect()
    assert ended == [size]


def test_a_change_of_nothing_and_of_everything() -> None:
    nothing, every = listing_of([]).all(), listing_of([*persistent("a", "b"), "non-persistent://t/n/a"]).all()
    assert nothing.with_changes(persistent("a"), nothing) is nothing
    assert_selection(nothing.with_changes([], every), every.names.to_pylist())
    assert_selection(every.with_changes(every.names, nothing), [])
    assert every.with_changes(every.names, every) is every  # a name in both stays
    assert (nothing.changes_size(5), every.changes_size(0)) == (0, 0)
    assert every.fields_size < every.changes_size(2) == every.changes_size(9)


def test_added_topics_are_of_the_namespace_and_the_mode() -> None:
    kept = listing_of(persistent("a"), Mode.PERSISTENT).all()
    for other in (
        Listing.from_names("t/m", Mode.PERSISTENT, ["persistent://t/m/x"]),
        listing_of(["non-persistent://t/n/x"]),
    ):
        with pytest.raises(InvalidListing, match="do not belong"):
            kept.with_changes([], other.all())


def test_what_the_core_has_not_matched_takes_the_pattern_away() -> None:
    pattern = compile_pattern("t/n/a.*")
    kept = listing_of(persistent("a1", "a2", "b")).matching(pattern)
    added = listing_of(persistent("a3", "c"))
    assert kept.with_changes([], added.all()).pattern is None
    assert kept.with_changes([], added.matching(pattern)).pattern == pattern.text
    assert kept.with_changes(persistent("a1"), added.range(0, 0)).pattern == pattern.text


def test_claimed_names_are_checked_before_they_are_shared() -> None:
    names = persistent(*(f"{number:05}" for number in range(200)))
    column = listing_of(names, Mode.PERSISTENT).all().column()
    swapped = column.take(pa.array([*range(100), 101, 100, *range(102, 200)]))
    claimed = Listing.from_encoded("t/n", Mode.PERSISTENT, swapped)
    added = listing_of(persistent("00003x"), Mode.PERSISTENT).all()
    assert len(claimed.range(0, 20).with_changes([], added)) == 21
    with pytest.raises(InvalidListing):
        claimed.all().with_changes([], added)


@in_one_test("seed", range(examples(8)))
def test_it_is_the_listing_of_the_names(seed: int) -> None:
    pick = random.Random(seed)
    drawn = [
        f"{pick.choice(['persistent', 'non-persistent'])}://t/n/{pick.choice('abé😀')}{pick.randint(0, 99)}"
        + "x" * pick.choice([0, 0, 150])
        for _ in range(80)
    ]
    before, fresh = listing_of(drawn[:60]), listing_of(drawn[60:])
    base = pick.choice([before.all(), before.matching(compile_pattern("t/n/.*[0-4]")), before.range(3, 30)])
    has = set(base.names.to_pylist())
    _, known = listing_of(base.names.to_pylist()).locate(fresh.names)
    added = fresh.rows(np.flatnonzero(~known))
    put, _ = listing_of(base.names.to_pylist()).locate(added.names)
    gone = np.sort(np.array(pick.sample(range(len(base)), min(len(base), pick.randint(0, 9))), np.int64))
    names = base.names.to_pylist()
    wanted = listing_of(sorted(has - {names[at] for at in gone} | set(added.names.to_pylist())))
    spliced = base.spliced(gone, put, added)
    assert spliced.names.equals(wanted.names)
    assert spliced.topics_hash == wanted.topics_hash
    assert bytes(spliced.body()) == bytes(wanted.all().body())


def test_a_topic_in_a_wrong_place_is_refused() -> None:
    base, added = listing_of(["persistent://t/n/a", "persistent://t/n/c"]), listing_of(["persistent://t/n/b"])
    assert len(base.all().spliced([], [1], added.all())) == 3
    for put in ([0], [2]):
        with pytest.raises(InvalidListing, match="order of the hash"):
            base.all().spliced([], put, added.all())
    with pytest.raises(InvalidListing):
        base.all().spliced([], [1], listing_of(["persistent://t/n/a"]).all())  # twice
    with pytest.raises(InvalidListing):
        base.all().spliced([], [0], Listing.from_names("t/o", Mode.ALL, ["persistent://t/o/a"]).all())
    for gone, put in (([0, 0], [1]), ([2], [1]), ([-1], [1]), ([], [3]), ([], [])):
        with pytest.raises((ValueError, IndexError)):
            base.all().spliced(gone, put, added.all())


@pytest.mark.parametrize("mode", [Mode.PERSISTENT, Mode.NON_PERSISTENT])
def test_topics_of_a_listing_of_all_modes_go_where_their_domain_is_listed(mode: Mode) -> None:
    domain = "persistent" if mode is Mode.PERSISTENT else "non-persistent"
    other = "non-persistent" if mode is Mode.PERSISTENT else "persistent"
    base = listing_of([f"{domain}://t/n/a", f"{domain}://t/n/c"], mode).all()
    every = listing_of([f"{domain}://t/n/b", f"{other}://t/n/b"])
    shown = every.matching(compile_pattern(".*")).mask(
        np.array([name.startswith(f"{domain}:") for name in every.names.to_pylist()])
    )
    spliced = base.spliced([], [1], shown)
    assert spliced.names.to_pylist() == [f"{domain}://t/n/{letter}" for letter in "abc"]
    assert spliced.listing.mode is mode
    at = [0, 1] if mode is Mode.PERSISTENT else [1, 2]
    with pytest.raises(InvalidListing, match="do not belong"):
        base.spliced([], at, every.all())
    with pytest.raises(InvalidListing, match="do not belong"):
        base.spliced([], [0], Listing.from_names("t/m", mode, [f"{domain}://t/m/x"]).all())


@pytest.mark.parametrize("gone", [[0.0], [True], [[0]], [1, 0], [1, -(2**63), -1, 1]], ids=str)
def test_positions_are_ascending_integers(gone: Any) -> None:
    kept = Listing.from_names("t/n", Mode.PERSISTENT, ["persistent://t/n/a", "persistent://t/n/b"]).all()
    with pytest.raises(ValueError, match="ascending integers"):
        kept.spliced(np.array(gone), [], kept.range(0, 0))


def test_where_much_changes_all_is_hashed_in_one_go() -> None:
    names = persistent(*(f"{number:05}" for number in range(5000)))
    every = listing_of(names, Mode.PERSISTENT).all()
    for count, by_blocks in ((2, True), (200, False)):
        gone = names[:: 5000 // count]
        changed = every.with_changes(gone, every.listing.range(0, 0))
        (chunk,) = data_of(changed.listing).chunks
        assert chunk.known_crc is not None
        assert (chunk.known_blocks is not None) is by_blocks
        assert_selection(changed, sorted({*names} - {*gone}))
        again = changed.with_changes(persistent("00001"), every.listing.range(0, 0))
        assert data_of(again.listing).chunks[0].known_blocks is not None, "a small change made them"
        assert_selection(again, sorted({*names} - {*gone, *persistent("00001")}))


def test_names_beside_a_stretch_are_none_of_it() -> None:
    names = persistent(*(f"{number:03}" for number in range(100)))
    whole = listing_of(names, Mode.PERSISTENT)
    for part, shown in (
        (whole.range(10, 20), names[10:20]),
        (whole.rows(range(10, 90, 8)), names[10:90:8]),
    ):
        assert part.with_changes([names[9], names[25], names[95]], whole.range(0, 0)) is part
        added = whole.rows([3, 12, 40, 97])
        assert_selection(part.with_changes([], added), sorted({*shown, *added.names.to_pylist()}))


def test_small_pieces_are_joined_and_whole_chunks_shared() -> None:
    names = persistent(*(f"{number:05}" for number in range(3000)))
    with tiny_chunks(4096):
        whole = listing_of(names, Mode.PERSISTENT)
        chunks = data_of(whole).chunks
        sizes = [chunk.size for chunk in chunks]
        # A stretch is whole chunks but for its ends.
        part = whole.range(1, 3000 - sizes[-1] - 1)
        own = own_chunks(data_of(whole), part_of(part))
        assert own[1:-1] == [*chunks[1:-2]]
        assert not {own[0], own[-1]} & {*chunks}
        # A tenth of each chunk: as many topics as a chunk is made of are joined, and no more.
        picked = whole.rows(range(0, 3000, 10))
        own = own_chunks(data_of(whole), part_of(picked))
        assert [name for chunk in own for name in chunk.names(0, chunk.size).to_pylist()] == names[::10]
        assert len(chunks) // 10 <= len(own) <= len(chunks) // 10 + 2
        assert max(chunk.fields_size for chunk in own) <= 4096
        small = whole.with_changes(names[4 : sizes[0] + sizes[1] - 4], [])
    with tiny_chunks(40960):  # the same chunks are small ones now: of many, none is shared
        data = data_of(small)
        own = own_chunks(data, part_of(small.all()))
        assert not {*own} & {*data.chunks}
        assert len(own) < len(data.chunks) // 4
        one = data_of(whole.range(0, sizes[0]).on_its_own().listing)
        assert own_chunks(one, ListingPart(0, one.size)) == [*one.chunks], "but of one it is"


def test_answers_that_get_the_same_changes_share_the_chunks_that_changed() -> None:
    names = persistent(*(f"{number:05}-{'x' * 40}" for number in range(3000)))
    listing = listing_of(names, Mode.PERSISTENT)
    fresh = listing_of([f"{name}y" for name in names[10:2900:7]], Mode.PERSISTENT).all()
    gone = names[5:2900:11]
    every = listing.all().with_changes(gone, fresh)
    expected = sorted({*names, *fresh.names.to_pylist()} - {*gone})
    # Others have a whole chunk as well, or not; or other changes, also in the same places.
    again = listing.all().with_changes(gone, fresh)
    assert again is not every
    assert data_of(again.listing).chunks == data_of(every.listing).chunks
    assert_selection(again, expected)
    part = listing.range(0, 2990).with_changes(gone, fresh)
    assert_selection(part, expected[:-10])
    assert_selection(listing.all().with_changes(gone, fresh.range(0, 0)), sorted({*names} - {*gone}))
    assert_selection(listing.all().with_changes([], fresh), sorted({*names, *fresh.names.to_pylist()}))
    renamed = listing_of([name.replace("y", "z") for name in fresh.names.to_pylist()], Mode.PERSISTENT)
    other = listing.all().with_changes(gone, renamed.all())
    assert_selection(other, [name.replace("y", "z") for name in expected])
    for before, after in ((names[20], []), ([], names[20])):  # one row goes, or one comes in front of it
        added = listing_of([f"{names[19]}z"] if after else [], Mode.PERSISTENT).all()
        made = listing.all().with_changes([before] if before else [], added)
        assert_selection(
            made, sorted(({*names} - {*([before] if before else [])}) | {*added.names.to_pylist()})
        )
    # What no answer has any more is freed, and made once more.
    (chunk,) = data_of(every.listing).chunks
    ended = weakref.ref(chunk)
    del chunk, every
    gc.collect()
    assert ended() is not None, "the other answer has it"
    del again
    gc.collect()
    assert ended() is None
    assert_selection(listing.all().with_changes(gone, fresh), expected)


def test_all_answers_of_a_chunk_may_lose_all_of_it() -> None:
    names = persistent(*(f"{number:05}-{'x' * 40}" for number in range(3000)))
    listing = listing_of(names, Mode.PERSISTENT)
    for _ in range(2):
        assert_selection(listing.all().with_changes(names, listing.range(0, 0)), [])


def test_the_same_names_with_other_properties_are_another_change() -> None:
    name = "persistent://t/n/a0049-new"
    listing = valued([f"persistent://t/n/a{number:04}" for number in range(3000)], "old")
    kept = []
    for value in ("red", "blue"):
        changed = listing.all().with_changes([], valued([name], value).all())
        kept.append(changed)
        codes = [chunk.properties["color"] for chunk in data_of(changed.listing).chunks]
        values = [text for each in codes for text in each.column().to_pylist()]
        assert values == ["old"] * 50 + [value] + ["old"] * 2950


def valued(names: list[str], value: str) -> Listing:
    """A listing of topics that all have the same value of a property."""
    nothing = data_of(Listing.from_names("t/n", Mode.ALL, []))
    return own_listing_of(splice(nothing, ListingChange([], names, {"color": [value] * len(names)})))
