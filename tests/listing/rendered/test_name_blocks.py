"""Names as blocks: those of a selection and of a column, none too large."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_core import Listing, Mode, Selection
from broker_core.errors import InvalidListing
from broker_core.listing.listing import data_of
from broker_core.listing.rendered import name_blocks as module
from broker_core.listing.rendered.name_blocks import RenderedNames, has_line_feed, name_blocks
from broker_core.listing.rendered.pieces import BlockSize
from tests.support.topics import full_names, listing_of, persistent

#: Bytes of a chunk of the second round.
TINY_CHUNK = 400


def blocks_of(names: RenderedNames, most: int) -> list[list[bytes]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_ROWS", 3)
        return [block.with_separator(b"/").to_pylist() for block in name_blocks(names, BlockSize(most))]


def check(names: RenderedNames, expected: Sequence[str], most: int) -> None:
    blocks = blocks_of(names, most)
    assert [name.decode() for block in blocks for name in block] == [f"/{name}" for name in expected]
    for block in blocks:
        assert len(block) == 1 or sum(len(name) - 1 for name in block) <= most


@given(st.lists(full_names(), max_size=20), st.data(), st.integers(1, 600))
def test_all_names_in_order(names: list[str], data: st.DataObject, most: int) -> None:
    listing = listing_of(names)
    shown = listing.names.to_pylist()
    check(listing.all(), shown, most)
    picked = sorted(data.draw(st.sets(st.sampled_from(range(len(shown)))))) if shown else []
    check(listing.rows(picked), [shown[row] for row in picked], most)
    check(pa.array(shown[::-1], pa.large_string()), shown[::-1], most)


@given(st.lists(full_names(), max_size=20), st.data())
def test_line_feeds(names: list[str], data: st.DataObject) -> None:
    listing = listing_of(names)
    shown = listing.names.to_pylist()
    picked = sorted(data.draw(st.sets(st.sampled_from(range(len(shown)))))) if shown else []
    some = [shown[row] for row in picked]
    assert has_line_feed(listing.rows(picked)) == any("\n" in name for name in some)
    assert has_line_feed(pa.array(some, pa.large_string())) == any("\n" in name for name in some)


def test_a_chunk_is_asked_before_its_names() -> None:
    plain, quoted = listing_of(persistent("a", "b")), listing_of(persistent("a", 'b"', "c"))
    for block in name_blocks(plain.all(), BlockSize()):
        assert block.separated_in_json(b"").equals(block.with_separator(b""))
    assert all(chunk._json_text for chunk in data_of(plain).chunks)
    # Of a chunk in which one name needs it, others do not.
    assert [
        name
        for block in name_blocks(quoted.rows([0, 2]), BlockSize())
        for name in block.separated_in_json(b"").to_pylist()
    ] == [name.encode() for name in persistent("a", "c")]


def test_only_the_names_that_are_shown_are_checked() -> None:
    fields = (
        listing_of(persistent(*(f"n{number:04d}" for number in range(20_000)))).all().column().to_pylist()
    )
    fields[-1] = fields[-1][:-1]
    claimed = _claimed(fields)
    assert not has_line_feed(claimed.range(0, 100))
    assert sum(map(len, name_blocks(claimed.range(0, 100), BlockSize()))) == 100
    with pytest.raises(InvalidListing):
        list(name_blocks(claimed, BlockSize()))


def _claimed(fields: list[bytes]) -> Selection:
    return Listing.from_encoded("t/n", Mode.ALL, pa.array(fields, pa.large_binary())).all()


def test_names_of_all_lengths_of_a_length() -> None:
    names = persistent("a", "b" * 108, "b" * 109, "c" * 20_000, "d" * 32_700)
    (whole,) = blocks_of(pa.array(names, pa.large_string()), 1 << 20)
    assert whole == [f"/{name}".encode() for name in names]
    blocks = [
        block.with_separator(b"").to_pylist() for block in name_blocks(listing_of(names).all(), BlockSize())
    ]
    assert [name.decode() for block in blocks for name in block] == names
