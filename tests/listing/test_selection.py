"""Selections: exactly the names that masks, rows and patterns leave, in any combination."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_core.listing.fields_reader import GATHERED
from broker_core.listing.listing import data_of, part_of
from broker_core.listing.listing_hash import topics_hash
from broker_core.patterns import compile_pattern
from tests.support.topics import (
    assert_selection,
    full_names,
    listing_of,
    matching,
    persistent,
    visible,
)

PATTERNS = [
    *(
        "t/n/.*",
        "t/n/a.*",
        "t/n/a",
        "t/n/ab",
        "t/n/(a|b).*",
        "(?s)t/n/.*a.*",
        ".*ab.*",
        "t/n/[a-b]+",
        "(?i)t/n/k.*",
    ),
    *(
        ".*(xxxx|é).*",
        "t/n/(ab|\ue000|😀).*",
        "t/n/.*-partition-.*",
        "t/n/x{100}.*",
        "^t/n/.*$",
        "t/n/.*\n.*",
        "none",
    ),
    *(
        "t/n/a-partition-",
        "t/n/.*😀",
        r"t/n/\w+",
        "t/n/(|a)b?",
        "[^b]*",
        "^.*$",
        r"t/n/a\B.*",
        "(?m)t/n/^?.*",
    ),
]

#: Bytes of a chunk of the second round.
TINY_CHUNK = 400


@given(st.lists(full_names(), max_size=25), st.sampled_from(PATTERNS))
def test_a_pattern_selects_what_re2_matches(names: list[str], text: str) -> None:
    listing, shown = listing_of(names), visible(names)
    selection = listing.all().matching(compile_pattern(text))
    assert_selection(selection, matching(text, shown))
    assert selection.pattern == text
    assert part_of(listing.all().matching(compile_pattern(text))) is part_of(selection)


@given(st.lists(full_names(), max_size=25), st.data())
def test_selections_of_selections(names: list[str], data: st.DataObject) -> None:
    listing, shown = listing_of(names), visible(names)
    selection, left = listing.all(), shown
    for _ in range(data.draw(st.integers(1, 4))):
        step = data.draw(st.sampled_from(["match", "mask"]))
        if step == "match":
            text = data.draw(st.sampled_from(PATTERNS))
            selection, left = selection.matching(compile_pattern(text)), matching(text, left)
        else:
            keep = data.draw(st.lists(st.booleans(), min_size=len(left), max_size=len(left)))
            selection = selection.mask(np.array(keep, bool))
            left = [name for name, kept in zip(left, keep, strict=True) if kept]
        assert_selection(selection, left)
        assert [shown[row] for row in selection.row_array.tolist()] == left


def test_neighbours_are_a_slice_that_copies_nothing() -> None:
    listing = listing_of(persistent("a", "b", "c", "d"))
    middle = listing.rows(np.array([1, 2]))
    assert middle.is_slice
    assert not middle.is_whole
    assert (middle.heap_bytes, middle.remembered_bytes) == (0, 0)
    body = middle.body()
    (chunk,) = data_of(listing).chunks
    assert body.obj is chunk.fields
    assert middle.reader().read(5).obj is chunk.fields
    assert listing.all().is_whole


def test_gathered_rows_say_what_they_cost() -> None:
    listing = listing_of(persistent("a", "b", "c"))
    ends = listing.rows(np.array([0, 2]))
    assert not ends.is_slice
    assert ends.remembered_bytes == 2 * 4 + ends.fields_size
    assert ends.heap_bytes == 2 * len(ends.body()) + 8
    assert not ends.hash_known
    assert ends.topics_hash == topics_hash(persistent("a", "c"))
    assert ends.hash_known


def test_many_gathered_rows_cost_no_more_than_a_piece_and_their_positions() -> None:
    names = persistent(*(f"orders-{number:06d}" for number in range(80_000)))
    selection = listing_of(names).rows(np.arange(0, 80_000, 2))
    assert selection.fields_size > 3 * GATHERED
    assert selection.heap_bytes == GATHERED + 4 * 40_000
    assert_selection(selection, names[::2])  # hashed and read in several pieces


def test_on_its_own_a_selection_lets_the_columns_of_its_listing_go() -> None:
    names = persistent("a", "b", "c", "d")
    listing = listing_of(names)
    gone = weakref.ref(listing)
    pattern = compile_pattern("t/n/[^x]")
    parts = {
        "whole": listing.all(),
        "matched": listing.matching(pattern),
        "slice": listing.rows(np.array([1, 2])),
        "rows": listing.rows(np.array([0, 3])),
    }
    hashes = {name: part.topics_hash for name, part in parts.items()}
    own = {name: part.on_its_own() for name, part in parts.items()}
    del listing, parts
    gc.collect()
    assert gone() is None
    assert [own[name].topics_hash for name in own] == [hashes[name] for name in own]
    assert own["matched"].pattern == pattern.text
    for name, wanted in (
        ("whole", names),
        ("matched", names),
        ("slice", names[1:3]),
        ("rows", [names[0], names[3]]),
    ):
        assert_selection(own[name], wanted)
        assert own[name].is_slice


def test_a_mask_must_fit() -> None:
    listing = listing_of(persistent("a", "b", "c"))
    for wrong in (np.ones(2, bool), np.ones(4, bool), np.ones((3, 1), bool), np.ones((), bool)):
        with pytest.raises(ValueError, match="a mask of shape"):
            listing.all().mask(wrong)
    everything = listing.all()
    assert everything.mask(np.ones(3, bool)) is everything


def test_a_pattern_that_was_applied_stays_applied() -> None:
    listing = listing_of(persistent("a", "b", "c"))
    found = listing.matching(compile_pattern("persistent://t/n/[ab]"))
    assert found.pattern == "t/n/[ab]"
    assert found.mask(np.array([True, False])).pattern == "t/n/[ab]"
    assert listing.all().pattern is None
