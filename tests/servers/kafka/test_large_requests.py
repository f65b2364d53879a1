from __future__ import annotations

import asyncio

from broker_core.servers.kafka.large_requests import LARGE, SLICE, LargeRequests, in_slices
from tests.support.eventually import eventually


async def under_way(*sizes: int) -> tuple[LargeRequests, list[int], list[asyncio.Task[None]], asyncio.Event]:
    """Requests of these sizes that wait for an event within their turns, and which of them have one."""
    requests, having, gate = LargeRequests(), [], asyncio.Event()

    async def handle(size: int) -> None:
        async with requests.turn(size):
            having.append(size)
            await gate.wait()

    tasks = [asyncio.create_task(handle(size)) for size in sizes]
    await asyncio.sleep(0)
    return requests, having, tasks, gate


async def test_huge_requests_are_handled_one_by_one_and_hold_up_no_others() -> None:
    huge = 1024 * 1024
    _, having, tasks, gate = await under_way(huge, huge + 1, LARGE, LARGE + 1)
    assert having == [huge, LARGE, LARGE + 1]
    gate.set()
    await asyncio.gather(*tasks)
    assert having[-1] == huge + 1


async def test_a_few_large_requests_are_handled_at_a_time() -> None:
    _, having, tasks, gate = await under_way(*[LARGE + 1] * 10, *[LARGE] * 10)
    assert (having.count(LARGE + 1), having.count(LARGE)) == (8, 10)
    tasks[0].cancel()
    await eventually(lambda: having.count(LARGE + 1) == 9)
    gate.set()
    await asyncio.gather(*tasks[1:])


async def test_others_have_a_turn_between_slices() -> None:
    seen: list[int] = []

    async def other() -> None:
        while len(seen) < 3:
            seen.append(len(done))
            await asyncio.sleep(0)

    done: list[int] = []

    def double(number: int) -> int:
        done.append(number)
        return 2 * number

    beside = asyncio.create_task(other())
    assert await in_slices(double, range(3 * SLICE)) == [2 * number for number in range(3 * SLICE)]
    await beside
    assert seen == [SLICE, 2 * SLICE, 3 * SLICE]
