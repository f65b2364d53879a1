"""So many connections in all: each waiter gets a place in turn, and none is lost."""

from __future__ import annotations

import asyncio
import random

import pytest

from broker_core.client.failover.connection_places import ConnectionPlaces


async def test_places_are_given_in_turn() -> None:
    places = ConnectionPlaces(1)
    await places.take()
    order: list[int] = []

    async def one(number: int) -> None:
        await places.take()
        order.append(number)
        places.give_back()

    tasks = [asyncio.create_task(one(number)) for number in range(3)]
    await asyncio.sleep(0)
    assert places.waiting == 3
    places.give_back()
    await asyncio.gather(*tasks)
    assert order == [0, 1, 2]
    assert places.taken == 0


async def test_an_idle_connection_gives_way() -> None:
    places = ConnectionPlaces(1)
    await places.take()
    places.evictors.append(lambda: False)

    def evict() -> bool:
        places.give_back()
        return True

    places.evictors.append(evict)
    await asyncio.wait_for(places.take(), 60)
    assert places.taken == 1


async def test_one_that_becomes_idle_gives_way_to_who_waits() -> None:
    places = ConnectionPlaces(1)
    await places.take()
    waiting = asyncio.create_task(places.take())
    await asyncio.sleep(0)

    evicted = 0

    def evict() -> bool:
        nonlocal evicted
        evicted += 1
        places.give_back()
        return True

    places.evictors.append(evict)
    places.became_idle()
    await asyncio.wait_for(waiting, 60)
    places.became_idle()
    assert evicted == 1, "nobody waits"


async def test_more_connections_of_one_pool_leave_places_to_others() -> None:
    places = ConnectionPlaces(8)
    assert [places.take_spare() for _ in range(8)] == [True] * 6 + [False] * 2


@pytest.mark.parametrize("seed", range(5))
async def test_no_place_is_lost_whoever_gives_up(seed: int) -> None:
    chosen = random.Random(seed)
    places = ConnectionPlaces(3)

    async def one() -> None:
        await places.take()
        try:
            for _ in range(chosen.randrange(4)):
                await asyncio.sleep(0)
        finally:
            places.give_back()

    tasks = [asyncio.create_task(one()) for _ in range(200)]
    for task in chosen.sample(tasks, 100):
        await asyncio.sleep(0)
        task.cancel()
        assert places.taken <= 3
    await asyncio.gather(*tasks, return_exceptions=True)
    assert (places.taken, places.waiting) == (0, 0)
