from __future__ import annotations

import asyncio
import threading

import pytest

from broker_core.access import Asker
from broker_core.servers.kafka.large_requests import LARGE, SLICE, LargeRequests, in_slices, let_go
from broker_core.wire.kafka import Encoded, Fields
from tests.support.eventually import eventually


async def under_way(*sizes: int) -> tuple[LargeRequests, list[int], list[asyncio.Task[None]], asyncio.Event]:
    """Requests of these sizes that wait for an event within their turns, and which of them have one."""
    requests, having, gate = LargeRequests(), [], asyncio.Event()

    async def handle(size: int) -> None:
        async with requests.turn(size, Asker(remote_address="10.0.0.1:1")):
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
    large = 100 * 1024
    _, having, tasks, gate = await under_way(*[large] * 10, *[LARGE + 1] * 70, *[LARGE] * 90)
    assert [having.count(size) for size in (large, LARGE + 1, LARGE)] == [8, 64, 90]
    tasks[0].cancel()
    await eventually(lambda: having.count(large) == 9)
    gate.set()
    await asyncio.gather(*tasks[1:])


async def test_addresses_take_turns() -> None:
    requests, having, gate = LargeRequests(), [], asyncio.Event()

    async def handle(host: str) -> None:
        async with requests.turn(1024 * 1024, Asker(remote_address=f"{host}:1")):
            having.append(host)
            await gate.wait()

    tasks = [asyncio.create_task(handle(host)) for host in ("a", "a", "a", "b", "a", "b")]
    await asyncio.sleep(0)
    gate.set()
    await asyncio.gather(*tasks)
    assert having == ["a", "a", "b", "a", "b", "a"]


async def test_the_largest_keep_no_others_from_their_thread() -> None:
    requests, gate = LargeRequests(), threading.Event()
    huge = asyncio.create_task(requests.beside(1024 * 1024, gate.wait))
    assert await requests.beside(LARGE + 1, lambda: 7) == 7
    gate.set()
    assert await huge
    requests.close()


async def test_nothing_is_begun_for_who_has_left() -> None:
    requests, gate = LargeRequests(), threading.Event()
    begun: list[int] = []
    first = asyncio.create_task(requests.beside(1024 * 1024, gate.wait))
    second = asyncio.create_task(requests.beside(1024 * 1024, begun.append, 1))
    await asyncio.sleep(0)
    second.cancel()
    await asyncio.wait([second])
    gate.set()
    await first
    await requests.beside(1024 * 1024, begun.append, 2)
    assert begun == [2]
    requests.close()


def test_lists_are_let_go() -> None:
    rows: list[Fields] = [{} for _ in range(2_500)]
    let_go({"topics": rows, "none": None, "pieces": Encoded(0, [])})
    assert rows == []


async def test_others_have_a_turn_between_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    async def other() -> None:
        while len(done) < 3 * SLICE:
            seen.append(len(done))
            await asyncio.sleep(0)

    done: list[int] = []

    def double(number: int) -> int:
        done.append(number)
        return 2 * number

    # The time of a turn is over at once.
    monkeypatch.setattr("broker_core.concurrency.loop_turns.TURN_SECONDS", 0.0)
    beside = asyncio.create_task(other())
    assert await in_slices(double, range(3 * SLICE)) == [2 * number for number in range(3 * SLICE)]
    await beside
    assert {SLICE, 2 * SLICE} <= set(seen)
