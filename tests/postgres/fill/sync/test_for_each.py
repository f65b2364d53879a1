"""Many calls, some at once."""

from __future__ import annotations

import asyncio

import pytest

from broker_core_postgres.fill.filling_failed import FillingFailed
from broker_core_postgres.fill.sync.for_each import for_each


async def test_each_of_many_is_called_few_at_once() -> None:
    at_once = most = 0
    seen: list[int] = []

    async def call(item: int) -> None:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(0)
        seen.append(item)
        at_once -= 1

    await for_each(range(30), call, 4)
    assert sorted(seen) == list(range(30))
    assert most == 4
    await for_each([], call, 4)


async def test_the_first_error_ends_all_and_is_raised_as_it_is() -> None:
    async def call(item: int) -> None:
        if item == 3:
            raise FillingFailed("three")
        await asyncio.sleep(0)

    with pytest.raises(FillingFailed, match="three"):
        await for_each(range(1_000), call, 2)
