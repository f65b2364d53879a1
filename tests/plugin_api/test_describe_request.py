from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from broker_core import DescribeRequest, NamespaceName

NAMESPACE = NamespaceName("t", "n")
A = "persistent://t/n/a"


def test_names_and_ids_are_columns() -> None:
    named = DescribeRequest(NAMESPACE, names=[A], wants=frozenset({"partitions"}))
    assert isinstance(named.names, pa.LargeStringArray)
    assert (named.names.to_pylist(), named.ids, len(named)) == ([A], None, 1)
    assert named.wants == frozenset({"partitions"})
    by_id = DescribeRequest(NAMESPACE, ids=[b"1" * 16, b"2" * 16])
    assert isinstance(by_id.ids, pa.FixedSizeBinaryArray)
    assert (by_id.names, len(by_id)) == (None, 2)


def test_either_names_or_ids() -> None:
    with pytest.raises(TypeError, match="either names or ids"):
        DescribeRequest(NAMESPACE)
    with pytest.raises(TypeError, match="either names or ids"):
        DescribeRequest(NAMESPACE, names=[A], ids=[b"1" * 16])
    with pytest.raises(ValueError, match="'replicas'"):
        DescribeRequest(NAMESPACE, names=[A], wants=frozenset({"replicas"}))


async def test_memory_can_be_leased() -> None:
    async with DescribeRequest(NAMESPACE, names=[A]).lease(10) as lease:
        await lease.grow(20)
        assert lease.size == 30


async def test_waiting_for_memory_is_not_the_plugins_time() -> None:
    waits: list[int] = []

    def pausing(function: Any) -> Any:
        async def paused(size: int) -> None:
            waits.append(size)
            await function(size)

        return paused

    request = DescribeRequest(NAMESPACE, names=[A]).pausing(pausing)
    async with request.lease(10) as lease:
        await lease.grow(20)
    assert waits == [10, 20]
    assert request.names is not None
