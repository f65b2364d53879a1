"""All budgets of a broker, and how the limits are divided between them."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from broker_core.memory.permit_budget import Permit
from broker_core.memory.permit_errors import PermitsClosed
from broker_core.memory.permits import Permits
from broker_core.settings import LimitsSettings
from tests.support.eventually import turns


async def started(demand: Coroutine[Any, Any, Permit]) -> asyncio.Task[Permit]:
    task = asyncio.create_task(demand)
    await turns()
    return task


async def test_small_answers_never_queue_behind_large_ones() -> None:
    permits = Permits(LimitsSettings(direct_permits=1 << 20))
    assert (permits.reserve.maximum, permits.direct.maximum) == (1 << 19, 1 << 19)  # at most half of it
    large = await permits.direct.acquire(1 << 20)
    waiting = await started(permits.direct.acquire(1 << 20))
    small = permits.reserve.try_acquire(64 * 1024)
    assert small is not None
    large.release()
    (await waiting).release()


def test_the_limit_of_direct_memory_includes_the_reserve() -> None:
    permits = Permits()
    assert permits.reserve.maximum == 8 << 20
    assert permits.direct.maximum + permits.reserve.maximum == 100 << 20
    tiny = Permits(LimitsSettings(direct_permits=1))
    assert (tiny.direct.maximum, tiny.reserve.maximum) == (1, 1)  # never 0, which is unlimited


async def test_the_budgets_know_nothing_of_each_other() -> None:
    permits = Permits(LimitsSettings(heap_permits=10, direct_permits=0))
    held = await permits.heap.acquire(10)
    (await permits.direct.acquire(1 << 50)).release()
    assert permits.reserve.maximum == 0
    assert permits.heap.fits(10)
    assert not permits.heap.fits(11)
    assert permits.reserve.fits(1 << 50)
    held.release()
    permits.close()
    with pytest.raises(PermitsClosed):
        permits.snapshots.try_acquire(1)


def test_what_is_kept_beside_snapshots_is_in_heap_where_they_are_full() -> None:
    permits = Permits(LimitsSettings(snapshots=1000, heap_permits=1000))
    found = permits.beside_snapshots(600)
    assert found is not None
    assert found.budget is permits.snapshots
    other = permits.beside_snapshots(500)
    assert other is not None
    assert other.budget is permits.heap
    assert permits.beside_snapshots(500) is None  # half of it is for requests
    other.release()
    assert permits.beside_snapshots(500) is not None
