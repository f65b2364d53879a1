"""The names of partitioned topics of a listing, against a plain computation of them."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from broker_core.listing.rendered.names import partitioned_topics, partitioned_topics_json_items
from broker_core.listing.rendered.pieces import BLOCK, BlockSize
from broker_core.names.partitions import partition_index, partitioned_local_name

_HERE = "persistent://t/n/"
#: Topics beside and within each other, and names that only look like partitions.
_LOCALS = [
    *(f"a-partition-{number}" for number in range(120)),
    *(f"a-partition-{number}x" for number in range(40)),
    *(f"a-partition-1-partition-{number}" for number in range(30)),
    *(f"b-partition-{number}" for number in (3, 7)),
    "a",
    "b-partition-03",
    "c-partition-",
    "-partition-4",
    "plain",
    'quo"te-partition-0',
    "café-partition-1",
]


def _column(locals_: list[str]) -> pa.LargeStringArray:
    return pa.array(sorted(_HERE + local for local in locals_), pa.large_string())


def _expected(locals_: list[str]) -> set[str]:
    return {_HERE + partitioned_local_name(local) for local in locals_ if partition_index(local) >= 0}


#: Blocks of two or three names, of some, of all.
_BLOCKS = pytest.mark.parametrize("size", [64, 500, BLOCK])


@_BLOCKS
def test_each_topic_is_told_once(size: int) -> None:
    told = [
        topic
        for column in partitioned_topics(_column(_LOCALS), BlockSize(size))
        for topic in column.to_pylist()
    ]
    assert len(told) == len(set(told))
    assert set(told) == _expected(_LOCALS)


@_BLOCKS
def test_no_partitions_are_no_topics(size: int) -> None:
    assert list(partitioned_topics(_column(["a", "b-partition-x", "-partition-1"]), BlockSize(size))) == []
    assert b"".join(partitioned_topics_json_items(_column(["a"]), BlockSize(size))) == b""
    assert list(partitioned_topics(_column([]), BlockSize(size))) == []


@_BLOCKS
def test_they_are_items_of_json(size: int) -> None:
    said = b"".join(partitioned_topics_json_items(_column(_LOCALS), BlockSize(size)))
    assert set(json.loads(b"[" + said + b"]")) == _expected(_LOCALS)
