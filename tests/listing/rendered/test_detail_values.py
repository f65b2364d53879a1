"""Values of details as JSON, read again."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from broker_core.listing.details import DETAIL_TYPES
from broker_core.listing.rendered.detail_values import (
    JSON_VALUES,
    all_pairs_bytes,
    between,
    joined_texts,
    pairs_bytes,
)

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=6) | st.sampled_from(
    ['"', "\\", "\n", "😀", ""]
)
MAPS = st.lists(st.none() | st.dictionaries(TEXT, TEXT, max_size=4))


def maps(values: list[dict[str, str] | None]) -> pa.MapArray:
    pairs = [None if value is None else list(value.items()) for value in values]
    return pa.array(pairs, DETAIL_TYPES["properties"])


def shown(name: str, column: Any) -> list[Any]:
    return [json.loads(text) for text in JSON_VALUES[name](column).to_pylist()]


@given(MAPS, st.integers(0, 3))
def test_properties(values: list[dict[str, str] | None], skip: int) -> None:
    assert shown("properties", maps(values)) == values
    assert shown("properties", maps(values)[skip:]) == values[skip:]
    texts = JSON_VALUES["properties"](maps([{"b": "1", "a": "2"}])).to_pylist()
    assert texts == [b'{"b":"1","a":"2"}']


@given(MAPS, st.integers(0, 3))
def test_bytes_of_properties(values: list[dict[str, str] | None], skip: int) -> None:
    sizes = [sum(len((key + item).encode()) for key, item in (value or {}).items()) for value in values]
    assert pairs_bytes(maps(values)).tolist() == sizes
    assert pairs_bytes(maps(values)[skip:]).tolist() == sizes[skip:]
    assert all_pairs_bytes(maps(values)) == sum(sizes)
    assert all_pairs_bytes(maps(values)[skip:]) == sum(sizes[skip:])


@given(st.lists(st.none() | st.integers(-(2**31), 2**31 - 1)))
def test_numbers(values: list[int | None]) -> None:
    assert shown("partitions", pa.array(values, pa.int32())) == values


def test_ids_that_are_known_and_not() -> None:
    assert shown("topic_id", pa.array([None, bytes(16)], pa.binary(16))) == [None, "A" * 22]


def test_texts_side_by_side() -> None:
    texts = pa.array([b"a", b""], pa.large_binary())
    assert between(b"<", texts, b">").to_pylist() == [b"<a>", b"<>"]
    assert between(b"", texts).to_pylist() == [b"a", b""]
    assert joined_texts(texts, texts, separator=b"-").to_pylist() == [b"a-a", b"-"]
