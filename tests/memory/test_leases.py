from __future__ import annotations

import asyncio
import threading
from typing import Any

import pyarrow as pa

from broker_core.memory import permits as leases_module
from broker_core.memory.permit_budget import Permit, PermitBudget
from broker_core.memory.permits import Leases
from tests.support.eventually import eventually


class Thing:
    """Something with buffers."""


def held(budget: PermitBudget, size: int) -> Permit:
    permit = budget.try_acquire(size)
    assert permit is not None
    return permit


async def test_a_lease_ends_with_the_last_reference() -> None:
    budget, leases = PermitBudget(100), Leases()
    thing = Thing()
    leases.hold(thing, held(budget, 60))
    assert thing in leases
    assert Thing() not in leases
    another = thing
    del thing
    leases.settle()
    assert budget.acquired == 60
    del another
    leases.settle()
    assert (budget.acquired, len(leases._permits._held)) == (0, 0)


async def test_who_waits_is_served_without_anybody_settling() -> None:
    budget, leases = PermitBudget(100), Leases()
    thing = Thing()
    leases.hold(thing, held(budget, 60))
    waiting = asyncio.create_task(budget.acquire(50))
    await asyncio.sleep(0)
    del thing
    assert (await asyncio.wait_for(waiting, 60)).count == 50


async def test_an_object_may_end_in_another_thread() -> None:
    budget, leases = PermitBudget(100), Leases()
    things: list[Any] = [Thing()]
    leases.hold(things[0], held(budget, 60))
    thread = threading.Thread(target=things.clear)
    thread.start()
    thread.join()
    await eventually(lambda: budget.acquired == 0)


async def test_a_second_lease_takes_the_place_of_the_first() -> None:
    heap, snapshots, leases = PermitBudget(100), PermitBudget(100), Leases()
    thing = Thing()
    leases.hold(thing, held(heap, 60))
    leases.hold(thing, held(snapshots, 70))
    assert (heap.acquired, snapshots.acquired, len(leases._permits._held)) == (0, 70, 1)
    del thing
    leases.settle()
    assert snapshots.acquired == 0


async def test_an_object_in_the_place_of_one_that_ended_keeps_its_own_lease() -> None:
    budget, leases = PermitBudget(1000), Leases()
    thing = Thing()
    for _ in range(50):  # identities are used again
        thing = Thing()
        leases.hold(thing, held(budget, 10))
    leases.settle()
    assert (budget.acquired, len(leases._permits._held)) == (10, 1)
    assert thing in leases


async def test_large_memory_goes_back_to_the_system(monkeypatch: Any) -> None:
    released = asyncio.Event()

    class Pool:
        def release_unused(self) -> None:
            released.set()

    monkeypatch.setattr(pa, "default_memory_pool", Pool)
    monkeypatch.setattr(leases_module, "_RELEASE_DELAY", 0.0)
    budget, leases = PermitBudget(0), Leases()
    thing = Thing()
    leases.hold(thing, held(budget, 8 * 1024 * 1024))
    del thing
    await asyncio.wait_for(released.wait(), 60)


def test_an_object_may_outlive_the_loop() -> None:
    async def begun() -> Thing:
        thing = Thing()
        Leases().hold(thing, held(PermitBudget(100), 10))
        return thing

    thing = asyncio.run(begun())
    del thing  # nobody waits for permits any more: no error, no warning


async def test_parts_of_a_permit_are_held_for_each_owner() -> None:
    budget, leases = PermitBudget(100), Leases()
    things = [Thing(), Thing(), Thing()]
    leases.hold_parts([(things[0], 10), (things[1], 20), (things[2], 30)], held(budget, 65))
    assert [permit.count for thing in things if (permit := leases.held(thing))] == [10, 20, 35]
    del things[1]
    leases.settle()
    assert budget.acquired == 45
    things.clear()
    leases.settle()
    assert budget.acquired == 0


async def test_permits_that_are_too_few_for_their_owners_are_never_more_than_there_are() -> None:
    budget, leases = PermitBudget(100), Leases()
    things = [Thing(), Thing(), Thing()]
    leases.hold_parts([(thing, 30) for thing in things], held(budget, 50))
    assert [permit.count for thing in things if (permit := leases.held(thing))] == [30, 20, 0]
    assert budget.acquired == 50
    leases.hold_parts([], held(budget, 10))
    assert budget.acquired == 50, "permits without an owner are released"


async def test_the_loop_is_told_once_of_owners_that_end_together(monkeypatch: Any) -> None:
    budget, leases = PermitBudget(1000), Leases()
    told = []
    loop = asyncio.get_running_loop()
    whole = loop.call_soon_threadsafe

    def counted(*arguments: Any) -> Any:
        told.append(arguments)
        return whole(*arguments)

    monkeypatch.setattr(loop, "call_soon_threadsafe", counted)
    for _ in range(2):
        things = [Thing() for _ in range(100)]
        leases.hold_parts([(thing, 1) for thing in things], held(budget, 100))
        things.clear()
        await eventually(lambda: budget.acquired == 0)
    assert len(told) == 2
