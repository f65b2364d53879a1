"""Building the columns of a listing: checks, order, and the encoded fields."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_core.errors import InvalidListing
from broker_core.listing.build_columns import build_columns, checked_local_names, row_type
from broker_core.listing.fields_codec import encode_fields
from tests.support.topics import NAMESPACE, decoded_topics, local_names, matched_form, visible

# Both sides of the lengths at which a varint grows, in bytes.
EDGES = [1, 126, 127, 128, 129, 16_382, 16_383, 16_384, 16_385, 32_767]


def joined(names: list[str]) -> pa.LargeStringArray:
    return pa.array([f",{name}" for name in names], pa.large_string())


@pytest.mark.parametrize(
    "names",
    [
        [],
        ["a"],
        ["a", "b", "c"],
        ["x" * size for size in EDGES],
        ["x" * size for size in reversed(EDGES)],
        ["x" * 127, "y" * 127],
        ["x" * 128, "y" * 20_000, "z"],
        ["é" * 64, "é" * 63, "😀" * 32],
        ["x" * 200, "y" * 300],
    ],
    ids=lambda names: f"{len(names)} names",
)
def test_fields_are_encoded_as_protobuf_does(names: list[str]) -> None:
    fields = encode_fields(joined(names))
    assert decoded_topics(b"".join(fields.to_pylist())) == names
    for field, name in zip(fields.to_pylist(), names, strict=True):
        assert decoded_topics(field) == [name]


@given(st.lists(st.sampled_from(EDGES).flatmap(lambda size: st.integers(max(size - 1, 1), size)), max_size=8))
def test_any_lengths_beside_each_other(sizes: list[int]) -> None:
    names = [chr(ord("a") + index) * size for index, size in enumerate(sizes)]
    assert decoded_topics(b"".join(encode_fields(joined(names)).to_pylist())) == names


def test_what_is_encoded_is_not_changed() -> None:
    column = joined(["a", "bb", "x" * 130])
    before = column.to_pylist()
    encode_fields(column)
    encode_fields(column[1:])
    assert column.to_pylist() == before


@given(st.lists(local_names(), max_size=12), st.lists(local_names(), max_size=6))
def test_the_columns_are_in_their_orders(persistent: list[str], other: list[str]) -> None:
    columns = build_columns(
        NAMESPACE, pa.array(persistent, pa.large_string()), pa.array(other, pa.large_string())
    )
    names = [f"persistent://t/n/{name}" for name in persistent] + [
        f"non-persistent://t/n/{name}" for name in other
    ]
    shown = visible(names)
    assert columns.joined.to_pylist() == [f",{name}".encode() for name in shown]
    forms = [matched_form(name) for name in shown]
    order = range(len(shown)) if columns.by_matched is None else columns.by_matched.tolist()
    assert columns.matched.to_pylist() == [forms[row] for row in order] == sorted(forms, key=str.encode)
    assert columns.by_matched is None or columns.by_matched.dtype == np.int32
    if columns.by_matched is None:
        assert forms == sorted(forms, key=str.encode)


def test_a_domain_may_be_missing() -> None:
    one = pa.array(["b", "a"], pa.large_string())
    assert build_columns(NAMESPACE, one, None).joined.to_pylist() == [
        b",persistent://t/n/a",
        b",persistent://t/n/b",
    ]
    assert build_columns(NAMESPACE, None, one[:1]).joined.to_pylist() == [b",non-persistent://t/n/b"]
    assert len(build_columns(NAMESPACE, None, None).joined) == 0
    assert len(build_columns(NAMESPACE, one[:0], one[:0]).matched) == 0


@pytest.mark.parametrize("bad", [["a", ""], ["a/b"], ["a\0"], [None], [1], ["x" * 40_000]], ids=str)
def test_local_names_are_checked(bad: list[object]) -> None:
    with pytest.raises(InvalidListing):
        checked_local_names(bad)


def test_checked_names_are_a_column() -> None:
    assert checked_local_names(pa.array(["a", "b"])).type == pa.large_string()


def test_positions_are_as_small_as_is_safe() -> None:
    assert row_type(2**31 - 1) is np.int32
    assert row_type(2**31) is np.int64
