"""Partition suffixes: only a canonical index makes one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_core.names import TopicName
from broker_core.names.partitions import (
    MAX_PARTITION_INDEX,
    partition_index,
    partition_name,
    partitioned_local_name,
)
from tests.support.topics import local_names


@pytest.mark.parametrize(
    ("local", "index"),
    [
        ("x-partition-4", 4),
        ("x-partition-0", 0),
        ("x-partition-10", 10),
        ("x-partition-2147483647", MAX_PARTITION_INDEX),
        ("a-partition-1-partition-2", 2),
        ("-partition--partition-5", 5),
        ("-partition-partition-5", 5),
        ("x-partition-2147483648", -1),
        ("x-partition-9999999999", -1),
        ("x-partition-10000000000", -1),
        ("x-partition--1", -1),
        ("x-partition-00", -1),
        ("x-partition-012", -1),
        ("x-partition- 12", -1),
        ("x-partition-12 ", -1),
        ("x-partition-12\n", -1),
        ("x-partition-1&", -1),
        ("x-partition-x", -1),
        ("x-partition-+1", -1),
        ("x-partition-", -1),
        ("x-partition-٣", -1),
        ("x-partition-₂", -1),
        ("tp1-partition-0-DLQ", -1),
        ("partition-0", -1),
        ("-partition-3", -1),
        ("-partition-", -1),
        ("x", -1),
    ],
)
def test_only_a_canonical_index_makes_a_partition(local: str, index: int) -> None:
    assert partition_index(local) == index
    topic = TopicName.parse(f"persistent://t/n/{local}")
    assert topic.partition == index
    if index < 0:
        assert partitioned_local_name(local) == local
        assert topic.partitioned_name is topic
    else:
        assert f"{partitioned_local_name(local)}-partition-{index}" == local
        assert str(topic.partitioned_name) == f"persistent://t/n/{partitioned_local_name(local)}"


@given(local_names(), st.integers(0, MAX_PARTITION_INDEX))
def test_any_topic_may_have_any_partition(local: str, index: int) -> None:
    partition = f"{local}-partition-{index}"
    assert partition_index(partition) == index
    assert partitioned_local_name(partition) == local


@given(local_names(), st.integers(0, MAX_PARTITION_INDEX))
def test_the_name_of_a_partition_has_its_index_and_topic(topic: str, index: int) -> None:
    name = partition_name(topic, index)
    assert (partition_index(name), partitioned_local_name(name)) == (index, topic)
