"""Memory that is reserved for pages: how much, and waiting for it."""

from __future__ import annotations

import asyncio

import pytest

from broker_core.errors import ListingFailed
from broker_core_postgres.listing.reserved_memory import MustWaitForMemory, ReservedMemory


async def test_memory_grows_and_is_asked_for_once() -> None:
    asked: list[int] = []

    async def reserve(size: int) -> None:
        asked.append(size)

    memory = ReservedMemory(reserve)
    await memory.reserve(1000)
    await memory.reserve(10)
    await memory.reserve_now(900)
    await memory.reserve_now(1001)
    assert asked == [1000, 1500]
    assert memory.reserved == 1500
    assert memory.page_bytes == 300
    assert ReservedMemory.bytes_for_page(300) == 1500
    assert ReservedMemory.bytes_for_page(0, held=100) == 125


async def test_memory_that_has_to_be_waited_for() -> None:
    granted = asyncio.Event()

    async def reserve(_size: int) -> None:
        await granted.wait()

    memory = ReservedMemory(reserve)
    with pytest.raises(MustWaitForMemory) as waiting:
        await memory.reserve_now(100)
    assert memory.reserved == 0
    granted.set()
    await memory.wait_for(waiting.value)
    assert memory.reserved == 100


async def test_memory_that_is_refused() -> None:
    async def reserve(_size: int) -> None:
        raise ListingFailed("none")

    with pytest.raises(ListingFailed, match="none"):
        await ReservedMemory(reserve).reserve_now(100)
