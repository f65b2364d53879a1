from __future__ import annotations

import asyncio

import pytest

from broker_core.concurrency import TasksByKey


async def test_all_that_wait_have_one_result_and_the_next_one_another() -> None:
    begun = 0
    go_on = asyncio.Event()

    async def work() -> int:
        nonlocal begun
        begun += 1
        await go_on.wait()
        return begun

    tasks: TasksByKey[int] = TasksByKey()
    waiting = [asyncio.create_task(tasks.result("key", work)) for _ in range(3)]
    other = asyncio.create_task(tasks.result("other", work))
    await asyncio.sleep(0)
    waiting[0].cancel()  # the others still have a result
    await asyncio.sleep(0)
    go_on.set()
    assert await asyncio.gather(*waiting[1:], other) == [2, 2, 2]
    assert await tasks.result("key", work) == 3


async def test_an_error_is_raised_for_each_and_is_not_kept() -> None:
    async def fails() -> int:
        raise KeyError("gone")

    async def works() -> int:
        return 7

    tasks: TasksByKey[int] = TasksByKey()
    failed = await asyncio.gather(*(tasks.result(1, fails) for _ in range(2)), return_exceptions=True)
    assert [type(each) for each in failed] == [KeyError, KeyError]
    assert await tasks.result(1, works) == 7


async def test_closing_cancels_what_is_under_way_and_later_work_is_done_anew() -> None:
    async def never() -> int:
        await asyncio.Event().wait()
        raise AssertionError

    async def works() -> int:
        return 7

    tasks: TasksByKey[int] = TasksByKey()
    waiting = asyncio.create_task(tasks.result(1, never))
    await asyncio.sleep(0)
    await tasks.close()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert await tasks.result(1, works) == 7


async def test_so_many_at_a_time() -> None:
    tasks: TasksByKey[None] = TasksByKey(2)
    running = most = 0

    async def work() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1

    await asyncio.gather(*(tasks.result(number, work) for number in range(9)))
    assert most == 2
