"""The metrics of the memory permits."""

from __future__ import annotations

import asyncio

import pytest

from broker_core.memory.permit_errors import PermitTimeout
from broker_core.settings import LimitsSettings
from tests.support.scraped import scraped, shown


async def test_permits() -> None:
    metrics, permits, _ = shown(
        LimitsSettings(
            heap_permits=100, direct_permits=1000, snapshots=500, permit_timeout=0.01, permit_queue=7
        )
    )
    held = await permits.heap.acquire(60)
    permits.snapshots.try_acquire(5)
    permits.reserve.try_acquire(10)
    permits.direct.try_acquire(20)
    waiting = asyncio.create_task(permits.heap.acquire(50, timeout=60))
    await asyncio.sleep(0)
    with pytest.raises(PermitTimeout):
        await permits.heap.acquire(50)
    samples = scraped(metrics.registry)
    heap, direct = "broker_core_topic_list_heap", "broker_core_topic_list_direct"
    assert samples[f"{heap}_memory_used_bytes", ""] == 60
    assert samples[f"{heap}_memory_limit_bytes", ""] == 100
    assert (samples[f"{heap}_queue_size", ""], samples[f"{heap}_queue_max_size", ""]) == (1, 7)
    assert samples[f"{heap}_timeout_total", ""] == 1
    assert samples[f"{direct}_memory_used_bytes", ""] == 30
    assert samples[f"{direct}_memory_limit_bytes", ""] == 1000
    assert samples[f"{direct}_wait_time_seconds_count", ""] == 2
    assert samples["broker_core_snapshots_memory_used_bytes", ""] == 5
    assert samples["broker_core_snapshots_memory_limit_bytes", ""] == 500
    held.release()
    await waiting
    samples = scraped(metrics.registry)
    assert samples[f"{heap}_wait_time_seconds_count", ""] == 3  # at once, in vain, and after a while
    assert samples[f"{heap}_wait_time_seconds_bucket", "le=0.001"] >= 1
