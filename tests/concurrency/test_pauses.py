from __future__ import annotations

import asyncio

import pytest

from broker_core.concurrency import backoff, ended_within


async def test_what_ends_in_time_and_what_is_cancelled() -> None:
    event = asyncio.Event()
    waiting = asyncio.create_task(event.wait())
    assert not await ended_within(0, waiting)
    assert waiting.cancelled()
    event.set()
    assert await ended_within(60, event.wait())
    assert await ended_within(None, event.wait())


async def test_a_time_out_of_the_caller_is_its_own() -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await ended_within(60, asyncio.Event().wait())


@pytest.mark.parametrize(("failures", "longest"), [(1, 0.1), (2, 0.2), (4, 0.8), (6, 2.0), (10_000, 2.0)])
def test_pauses_double_up_to_the_longest_and_are_spread(failures: int, longest: float) -> None:
    pauses = [backoff(failures, 0.1, 2.0) for _ in range(200)]
    assert 0.5 * longest <= min(pauses) < 0.7 * longest
    assert 0.8 * longest < max(pauses) <= longest
