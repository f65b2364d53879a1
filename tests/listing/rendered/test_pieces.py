"""Pieces put together, and values with what separates them."""

from __future__ import annotations

from itertools import pairwise

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from broker_core.listing.rendered.pieces import BLOCK, BlockSize, joined_pieces, separated
from tests.support.examples import examples

SMALL = BLOCK // 4


@given(st.lists(st.sampled_from([1, 10, SMALL - 1, SMALL, BLOCK - 5, BLOCK + 5]), max_size=40))
@settings(max_examples=examples(8))
def test_pieces_are_neither_tiny_nor_large(sizes: list[int]) -> None:
    given_pieces = [bytes([number]) * size for number, size in enumerate(sizes)]
    pieces = [bytes(piece) for piece in joined_pieces(given_pieces, BlockSize())]
    assert b"".join(pieces) == b"".join(given_pieces)
    assert all(len(piece) <= max(BLOCK, *sizes) for piece in pieces)
    for left, right in pairwise(pieces):
        few = len(set(left) | set(right))  # those that were given
        assert len(left) + len(right) > SMALL or few > 32


def test_a_large_piece_does_not_wait_for_the_next_one() -> None:
    made = []

    def pieces() -> object:
        for number in range(3):
            made.append(number)
            yield bytes(BLOCK)

    found = joined_pieces(pieces(), BlockSize())  # type: ignore[arg-type]
    next(found)
    assert made == [0]


@given(st.lists(st.lists(st.binary(), min_size=1)))
def test_the_first_separator_is_left_out_and_the_end_is_there(blocks: list[list[bytes]]) -> None:
    columns = [pa.array([b"--" + value for value in block], pa.large_binary()) for block in blocks]
    whole = b"".join(separated(columns, 2, b".", BlockSize()))
    values = [value for block in blocks for value in block]
    assert whole == (b"--".join(values) + b"." if values else b"")
