"""The helpers over columns work for every value, in slices too."""

from __future__ import annotations

from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_core_spark.arrow_columns import (
    buffer_and_offsets,
    is_ascending,
    not_utf8,
)

TEXTS = st.lists(st.text(max_size=5), max_size=8)


@given(TEXTS, st.integers(0, 8))
def test_bytes_and_offsets_are_those_of_the_slice(texts: list[str], low: int) -> None:
    column = pa.array(texts, pa.large_string())[low:]
    data, offsets = buffer_and_offsets(column)
    found = [bytes(data)[start:stop].decode() for start, stop in pairwise(offsets)]
    assert found == texts[low:]


def test_a_column_without_buffers_is_empty() -> None:
    data, offsets = buffer_and_offsets(pa.array([], pa.large_binary()))
    assert (bytes(data), offsets.tolist()) == (b"", [0])


@pytest.mark.parametrize(
    ("values", "ascends"),
    [([], True), ([b"a"], True), ([b"a", b"b"], True), ([b"a", b"a"], False), ([b"b", b"a", b"c"], False)],
)
def test_each_value_is_greater_than_the_one_before(values: list[bytes], ascends: bool) -> None:
    assert is_ascending(pa.array(values, pa.large_binary())) == ascends


def test_values_that_are_no_text_are_found_with_their_rows() -> None:
    column = pa.array([b"a", b"\xff", None, b"\xc3\xa9", b"\xc3"], pa.binary())
    assert list(not_utf8(column)) == [(1, b"\xff"), (4, b"\xc3")]
