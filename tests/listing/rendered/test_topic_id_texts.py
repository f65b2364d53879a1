"""Ids as text: what one by one gives."""

from __future__ import annotations

import uuid

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from broker_core.listing.rendered.detail_values import topic_id_texts
from broker_core.names.topic_id import topic_id_text

IDS = st.lists(st.binary(min_size=16, max_size=16))


@given(IDS)
def test_ids_are_written_as_one_by_one(ids: list[bytes]) -> None:
    column = pa.array(ids, pa.binary(16))
    expected = [topic_id_text(uuid.UUID(bytes=each)).encode() for each in ids]
    assert topic_id_texts(column).to_pylist() == expected
    assert topic_id_texts(column, quote=b'"').to_pylist() == [b'"' + each + b'"' for each in expected]
    assert topic_id_texts(column[1:]).to_pylist() == expected[1:]


def test_a_null_has_some_text() -> None:
    texts = topic_id_texts(pa.array([b"0" * 16, None], pa.binary(16)))
    assert texts.null_count == 0
    assert len(texts[1].as_py()) == 22
