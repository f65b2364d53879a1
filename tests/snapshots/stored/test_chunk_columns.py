"""Chunks as columns of a file: they come back as they were, and columns that no chunk has are refused."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_core.listing.chunks.build_chunks import build_chunks
from broker_core.listing.chunks.chunk import Chunk
from broker_core.names import PERSISTENT, NamespaceName
from broker_core.snapshots.stored.chunk_columns import chunk_of, file_of, in_order
from broker_core.snapshots.stored.column_file import read_columns
from broker_core.snapshots.stored.file_errors import RefusedFile
from broker_core.snapshots.stored.manifest import FORMAT

NAMESPACE = NamespaceName("t", "n")
TEXT = pa.large_string()
NAMES = ["a", "b-partition-0", "b-partition-10", "b-partition-2", "é", "\ue000", "\U0001f600"]
REGIONS = ["eu", None, "us", "eu", None, "", "us"]


def chunk(names: list[str] = NAMES, regions: list[str | None] | None = REGIONS) -> Chunk:
    properties = {} if regions is None else {PERSISTENT: {"region": pa.array(regions, TEXT)}}
    (made,) = build_chunks(NAMESPACE, pa.array(names, TEXT), None, properties)
    return made


def parts(of: Chunk, keys: tuple[str, ...] = ("region",)) -> tuple[dict[str, Any], dict[str, Any]]:
    file = file_of(of, keys)
    columns, facts = read_columns(b"".join(bytes(piece) for piece in file.pieces), file.reference)
    return columns, dict(facts)


def same(one: Chunk, other: Chunk) -> None:
    assert (one.namespace, one.domain, one.size) == (other.namespace, other.domain, other.size)
    assert one.names(0, one.size).equals(other.names(0, other.size))
    assert one.crc == other.crc
    assert one.is_plain == other.is_plain
    size = one.size
    assert one.forms.between(0, size).equals(other.forms.between(0, size))
    everywhere = np.arange(size)
    assert one.forms.rows(everywhere).tolist() == other.forms.rows(everywhere).tolist()
    assert {key: codes.column() for key, codes in one.properties.items()} == {
        key: codes.column() for key, codes in other.properties.items()
    }


@pytest.mark.parametrize("names", [NAMES, ["a", "b", "c", "d", "e", "f", "g"]])
def test_a_chunk_comes_back(names: list[str]) -> None:
    one = chunk(names)
    other = chunk_of(NAMESPACE, ("region",), one.size, *parts(one))
    same(one, other)
    assert other.known_crc is not None
    assert other.nbytes <= one.nbytes
    assert not other.field_offsets.flags.writeable


def test_the_format_has_a_new_number_where_the_columns_change() -> None:
    columns, facts = parts(chunk())
    told = repr((sorted((name, bytes(each).hex()) for name, each in columns.items()), sorted(facts.items())))
    digest = hashlib.blake2b(told.encode(), digest_size=8).hexdigest()
    # Files that were written before would be read as something else: raise FORMAT, then put the new digest here.
    assert (FORMAT, digest) == (1, "cc8616d395af45f5")


@given(
    st.lists(st.text("ab\U0001f600\ue000é", min_size=1, max_size=4), min_size=1, max_size=9, unique=True),
    st.data(),
)
def test_any_chunk_comes_back(locals_: list[str], data: st.DataObject) -> None:
    names = [name + data.draw(st.sampled_from(["", "-partition-1", "-partition-12"])) for name in locals_]
    regions = [data.draw(st.sampled_from([None, "eu", "us", ""])) for _ in names]
    one = chunk(names, regions)
    same(one, chunk_of(NAMESPACE, ("region",), one.size, *parts(one)))


def test_a_key_that_the_chunk_has_no_values_of_has_none() -> None:
    one = chunk(regions=None)
    other = chunk_of(NAMESPACE, ("team",), one.size, *parts(one, ("team",)))
    assert other.properties["team"].column().null_count == one.size


def numbers(*values: int, kind: Any = np.int64) -> pa.Buffer:
    return pa.py_buffer(np.array(values, kind).tobytes())


@pytest.mark.parametrize(
    "changed",
    [
        {"fields": None},
        {"fields": pa.py_buffer(b"x")},
        {"offsets": None},
        {"offsets": pa.py_buffer(b"1234567")},
        {"offsets": numbers(0, 1, 2)},
        {"forms": pa.py_buffer(b"\xff" * 100)},
        {"form_offsets": None},
        {"form_order": numbers(0, 0, 1, 2, 3, 4, 5, kind=np.int32)},
        {"form_order": numbers(-1, 0, 1, 2, 3, 4, 5, kind=np.int32)},
        {"form_order": numbers(7, 0, 1, 2, 3, 4, 5, kind=np.int32)},
        {"form_order": numbers(0, 1, kind=np.int32)},
        {"codes 0": None},
        {"codes 0": numbers(*[9] * 7, kind=np.int32)},
        {"codes 0": numbers(*[-2] * 7, kind=np.int32)},
        {"codes 0": numbers(0, kind=np.int32)},
        {"values 0": pa.py_buffer(b"\xff" * 4)},
        {"values 0": None},
        {"value_ends 0": None},
        {"value_ends 0": pa.py_buffer(b"")},
        {"value_ends 0": numbers(0, 3, 2, 4)},
    ],
)
def test_columns_that_no_chunk_has_are_refused(changed: dict[str, pa.Buffer | None]) -> None:
    columns, facts = parts(chunk())
    assert set(changed) <= set(columns)
    given_columns = {name: each for name, each in (columns | changed).items() if each is not None}
    with pytest.raises(RefusedFile):
        chunk_of(NAMESPACE, ("region",), len(NAMES), given_columns, facts)


@pytest.mark.parametrize("middle", [[0, 18, 18], [0, 20, 19], [1, 2, 3], [0, -1, 19]])
def test_offsets_that_do_not_ascend_are_refused(middle: list[int]) -> None:
    columns, facts = parts(chunk())
    offsets = np.frombuffer(columns["offsets"], np.int64).copy()
    offsets[: len(middle)] = middle
    with pytest.raises(RefusedFile):
        chunk_of(NAMESPACE, ("region",), len(NAMES), {**columns, "offsets": pa.py_buffer(offsets)}, facts)


@pytest.mark.parametrize(
    "changed",
    [
        {"domain": "other"},
        {"domain": 1},
        {"domain": "non-persistent"},
        {"text_crc": -1},
        {"text_crc": "1"},
        {"text_crc": 2**32},
        {"text_size": 0},
        {"text_size": 2**60},
    ],
)
def test_facts_that_no_chunk_has_are_refused(changed: dict[str, Any]) -> None:
    columns, facts = parts(chunk())
    with pytest.raises(RefusedFile):
        chunk_of(NAMESPACE, ("region",), len(NAMES), columns, facts | changed)
    with pytest.raises(RefusedFile):
        chunk_of(NAMESPACE, ("region",), len(NAMES), columns, {})


def test_names_of_another_namespace_and_no_names_are_refused() -> None:
    columns, facts = parts(chunk())
    with pytest.raises(RefusedFile, match="another namespace"):
        chunk_of(NamespaceName("t", "m"), ("region",), len(NAMES), columns, facts)
    with pytest.raises(RefusedFile):
        chunk_of(NAMESPACE, ("region",), 0, {"fields": pa.py_buffer(b""), "offsets": numbers(0)}, facts)


def test_chunks_are_in_order_where_their_names_ascend() -> None:
    one, two = chunk(["a", "c"], None), chunk(["d", "e"], None)
    assert in_order([one, two])
    assert in_order([])
    assert not in_order([two, one])
    assert not in_order([one, one])
    assert not in_order([chunk(["a", "d"], None), two])
    # As Java sorts them.
    assert in_order([chunk(["\U0001f600"], None), chunk(["\ue000"], None)])
