"""Work that takes too long fails with an error that says so; other errors stay as they are."""

from __future__ import annotations

import asyncio

import pytest

from broker_core.errors import Cause, ListingFailed, TooManyRequests
from broker_core.pipeline.runs.time_budget import TimeBudget


@pytest.mark.parametrize(
    ("budget", "kind", "says"),
    [
        (
            TimeBudget(0.01, "The listing took longer than", TooManyRequests),
            TooManyRequests,
            "The listing took longer than 0.01 s",
        ),
        (
            TimeBudget(0.01, "The lookup took longer than", ListingFailed),
            ListingFailed,
            "The lookup took longer than 0.01 s",
        ),
    ],
)
async def test_what_takes_longer(budget: TimeBudget, kind: type[ListingFailed], says: str) -> None:
    with pytest.raises(ListingFailed, match=says) as caught:
        async with budget.until(budget.deadline()):
            await asyncio.Event().wait()
    assert type(caught.value) is kind
    assert (caught.value.cause, caught.value.reason) == (Cause.TIME, "time")


async def test_a_block_that_ends_in_time() -> None:
    budget = TimeBudget(60, "The listing took longer than", TooManyRequests)
    async with budget.until(budget.deadline()):
        pass
    with pytest.raises(TimeoutError, match="of somebody else"):
        async with budget.until(budget.deadline()):
            raise TimeoutError("of somebody else")


async def test_a_cancellation_is_none_of_its_business() -> None:
    budget = TimeBudget(60, "The listing took longer than", TooManyRequests)

    async def wait() -> None:
        async with budget.until(budget.deadline()):
            await asyncio.Event().wait()

    task = asyncio.create_task(wait())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
