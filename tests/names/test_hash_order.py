"""The order of the topics hash: that of Java's strings."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from broker_core.listing.listing_hash import utf16_key
from broker_core.names.hash_order import hash_order_bytes, hash_order_key, hash_order_keys, is_ascending
from tests.support.topics import local_names


def column(names: list[str]) -> pa.LargeStringArray:
    """A slice in the midst of a column, so that offsets do not begin at 0."""
    return pa.array(["é", *names, "z"], pa.large_string())[1:-1]


@given(st.lists(local_names(), max_size=8))
def test_the_key_sorts_as_java_does(names: list[str]) -> None:
    keys = hash_order_key(column(names)).to_pylist()
    assert keys == hash_order_keys(column(names))
    assert keys == [hash_order_bytes(name.encode()) for name in names]
    by_key = [name for _, name in sorted(zip(keys, names, strict=True))]
    assert by_key == sorted(names, key=utf16_key)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), max_size=8))
def test_the_key_sorts_any_unicode_as_java_does(names: list[str]) -> None:
    assert sorted(names, key=lambda name: hash_order_bytes(name.encode())) == sorted(names, key=utf16_key)


@given(st.lists(st.text(st.sampled_from("ab"), max_size=3), max_size=5))
def test_ascending_is_sorted_and_nothing_twice(names: list[str]) -> None:
    assert is_ascending(column(names)) == (names == sorted(set(names)))
    assert is_ascending(hash_order_key(column(names))) == (names == sorted(set(names)))
