"""Names in each form, read again by what reads it."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_core.listing.rendered.name_blocks import RenderedNames
from broker_core.listing.rendered.names import (
    NAME_SCHEMA,
    LineFeedInName,
    names_arrow,
    names_json_items,
    names_ndjson,
    names_text,
)
from broker_core.listing.rendered.pieces import BLOCK, BlockSize
from tests.support.topics import NAMESPACE, full_names, listing_of, persistent

#: Bytes of a chunk of the second round.
TINY_CHUNK = 400

#: Names with what JSON writes otherwise, beside those of other tests.
QUOTED = st.lists(
    st.sampled_from(['"', "\\", "\\u0041", "\x01", "\x1f", "\x7f", "\r", "\u2028", "a", "😀"]), min_size=1
)
NAMES = st.lists(
    full_names() | QUOTED.map(lambda parts: f"persistent://{NAMESPACE}/{''.join(parts)}"), max_size=20
)


def forms(names: list[str]) -> list[tuple[RenderedNames, list[str]]]:
    """A listing, some of it, and a column in another order, each with its names."""
    listing = listing_of(names)
    shown: list[str] = listing.names.to_pylist()
    column = pa.array(shown[::-1], pa.large_string())
    every_third = listing.rows(range(0, len(shown), 3))
    return [
        (listing.all(), shown),
        (every_third, shown[::3]),
        (column, shown[::-1]),
        (column[1:], shown[::-1][1:]),
    ]


@given(NAMES)
def test_json(names: list[str]) -> None:
    for rendered, shown in forms(names):
        assert json.loads(b"[" + b"".join(names_json_items(rendered)) + b"]") == shown
        whole = b"".join(names_ndjson(rendered))
        assert [json.loads(line) for line in whole.split(b"\n")[:-1]] == shown
        assert whole.endswith(b"\n") == bool(shown)


@given(NAMES)
def test_text(names: list[str]) -> None:
    for rendered, shown in forms(names):
        if any("\n" in name for name in shown):
            with pytest.raises(LineFeedInName, match="line feed"):
                next(names_text(rendered))
        else:
            assert b"".join(names_text(rendered)).decode() == "".join(f"{name}\n" for name in shown)


@given(NAMES)
def test_arrow(names: list[str]) -> None:
    for rendered, shown in forms(names):
        table = pa.ipc.open_stream(b"".join(names_arrow(rendered))).read_all()
        table.validate(full=True)
        assert table.schema == NAME_SCHEMA
        assert table["name"].to_pylist() == shown


def test_pieces_of_many_names_are_bounded() -> None:
    listing = listing_of(persistent(*(f"{number:06d}-{'x' * 90}" for number in range(40_000))))
    for render in (names_text, names_json_items, names_ndjson, names_arrow):
        for names in (listing.all(), listing.rows(range(0, 40_000, 2)), listing.names):
            pieces = list(render(names))
            assert max(map(len, pieces)) <= BLOCK * 9 // 8
            assert sum(map(len, pieces)) / len(pieces) > 100


def test_the_size_of_pieces_may_change_between_them() -> None:
    listing = listing_of(persistent(*(f"{number:06d}-{'x' * 90}" for number in range(40_000))))
    for render in (names_text, names_json_items, names_ndjson, names_arrow):
        whole = b"".join(render(listing.all()))
        size = BlockSize(64 * 1024)
        pieces = render(listing.all(), size)
        small = next(pieces)
        size.bytes = BLOCK
        rest = list(pieces)
        assert len(small) <= 80 * 1024
        assert max(map(len, rest)) > BLOCK // 2
        if render is not names_arrow:  # whose batches are others
            assert b"".join([small, *rest]) == whole
