from __future__ import annotations

import numpy as np

from broker_core.wire.kafka.topic_fragments import metadata_family, with_operations
from broker_core.wire.kafka.topic_fragments.family import ids_column, partition_block
from tests.support.topic_chunks import chunk_of


def test_what_is_encoded_is_kept_with_the_chunk() -> None:
    chunk = chunk_of({"a": 1})
    family = metadata_family(12, 1)
    assert family.of(chunk) is family.of(chunk)
    assert metadata_family(13, 1) == family != metadata_family(12, 2)
    assert metadata_family(12, 2).of(chunk).data != family.of(chunk).data


def test_operations_are_put_into_a_copy() -> None:
    chunk = chunk_of({"a": 1, "b": 3})
    for version in (8, 9, 12):
        family = metadata_family(version, 1)
        own = with_operations(family.of(chunk), family, np.array([5, 5], np.int32))
        assert own.data == metadata_family(version, 1, 5).of(chunk).data != family.of(chunk).data


def test_partitions_count_up() -> None:
    first = bytes(6) + b"xy"
    assert partition_block(first, 0) == partition_block(first, 2, 3) == b""
    assert partition_block(first, 258, 256) == b"\0\0\0\0\1\0xy\0\0\0\0\1\1xy"


def test_a_topic_without_an_id_has_the_zero_id() -> None:
    assert ids_column(chunk_of({"a": 1, "b": 1}, ids=False)).to_pylist() == [bytes(16)] * 2
