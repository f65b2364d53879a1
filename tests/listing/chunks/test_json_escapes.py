"""Texts within the quotes of JSON, as the standard library reads them."""

from __future__ import annotations

import json

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from broker_core.listing.chunks.json_escapes import escaped, needs_escapes

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
HOSTILE = st.lists(
    st.sampled_from(['"', "\\", "\\n", "\n", "\0", "\x1f", "\x7f", " ", "😀", "\u2028", "é"])
).map("".join)


@given(st.lists(TEXT | HOSTILE))
def test_texts_are_read_again(texts: list[str]) -> None:
    column = pa.array([text.encode() for text in texts], pa.large_binary())
    quoted = [b'"' + each + b'"' for each in escaped(column).to_pylist()]
    assert [json.loads(each) for each in quoted] == texts
    if not needs_escapes(column):
        assert escaped(column).equals(column)


def test_each_character_that_needs_it() -> None:
    special = [
        code for code in range(0x100) if needs_escapes(pa.array([f"a{chr(code)}b"], pa.large_string()))
    ]
    assert special == [*range(0x20), ord('"'), ord("\\")]


def test_a_slice_is_looked_at_alone() -> None:
    column = pa.array(['"', "a", "b", '"'], pa.large_string())
    assert not needs_escapes(column[1:3])
    assert needs_escapes(column[1:])
    assert not needs_escapes(column[:0])
