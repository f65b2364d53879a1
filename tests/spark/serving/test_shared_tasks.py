"""Work is done once for all waiters, even if some go away, and no more than so many at a time."""

from __future__ import annotations

import asyncio

import pytest

from broker_core_spark.serving.shared_tasks import SharedTasks


async def test_those_that_wait_for_a_key_share_its_work_and_its_error() -> None:
    tasks = SharedTasks[int]()
    begun = 0
    go_on = asyncio.Event()

    async def work() -> int:
        nonlocal begun
        begun += 1
        await go_on.wait()
        if begun == 2:
            raise KeyError(begun)
        return 7

    for expected in (7, KeyError):
        go_on.clear()
        asked = [asyncio.ensure_future(tasks.result("key", work)) for _ in range(3)]
        await asyncio.sleep(0)
        asked[0].cancel()  # the others wait on
        go_on.set()
        gone, *found = await asyncio.gather(*asked, return_exceptions=True)
        assert isinstance(gone, asyncio.CancelledError)
        assert all(one == expected or type(one) is expected for one in found)
    assert begun == 2


async def test_so_many_at_a_time() -> None:
    tasks = SharedTasks[None](2)
    running = most = 0

    async def work() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1

    await asyncio.gather(*(tasks.result(number, work) for number in range(9)))
    assert most == 2


async def test_what_is_under_way_is_cancelled() -> None:
    tasks = SharedTasks[bool]()
    asked = asyncio.ensure_future(tasks.result(1, asyncio.Event().wait))
    await asyncio.sleep(0)
    tasks.close()
    with pytest.raises(asyncio.CancelledError):
        await asked


async def test_work_that_was_cancelled_before_it_began_is_no_result_for_later_callers() -> None:
    tasks = SharedTasks[int]()

    async def work() -> int:
        return 7

    asked = asyncio.ensure_future(tasks.result("key", work))
    await asyncio.sleep(0)
    tasks.close()
    with pytest.raises(asyncio.CancelledError):
        await asked
    assert await tasks.result("key", work) == 7
