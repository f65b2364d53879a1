from __future__ import annotations

import asyncio

from broker_core.concurrency.fair_places import FairPlaces
from tests.support.eventually import turns


class Guests:
    """Callers that stay in their place until they are released or cancelled."""

    def __init__(self, places: FairPlaces) -> None:
        self._places = places
        self.inside: list[str] = []
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._ends: dict[str, asyncio.Event] = {}

    async def come(self, name: str) -> None:
        """The key is the first letter."""
        self._ends[name] = asyncio.Event()
        self._tasks[name] = asyncio.create_task(self._stay(name))
        await turns()

    async def leave(self, name: str) -> None:
        self._ends[name].set()
        await turns()

    async def cancel(self, name: str) -> None:
        self._tasks[name].cancel()
        await turns()

    async def _stay(self, name: str) -> None:
        async with self._places.place(name[0]):
            self.inside.append(name)
            await self._ends[name].wait()


async def test_keys_take_turns() -> None:
    places = FairPlaces(2)
    guests = Guests(places)
    for name in ("a1", "a2", "a3", "a4", "b1", "b2"):
        await guests.come(name)
    assert (guests.inside, places.taken, places.waiting) == (["a1", "a2"], 2, 4)
    assert places.next_keys() == ["a", "b"]
    for name in ("a1", "a2", "a3", "b1"):
        await guests.leave(name)
    assert guests.inside == ["a1", "a2", "a3", "b1", "a4", "b2"]
    await guests.leave("a4")
    await guests.leave("b2")
    assert (places.taken, places.waiting) == (0, 0)


async def test_who_leaves_while_waiting_takes_no_place() -> None:
    places = FairPlaces(1)
    guests = Guests(places)
    for name in ("a1", "b1", "c1"):
        await guests.come(name)
    await guests.cancel("b1")
    assert places.waiting == 1
    await guests.cancel("a1")  # it was inside
    assert guests.inside == ["a1", "c1"]
    await guests.leave("c1")
    assert places.taken == 0


async def test_a_place_that_comes_too_late_is_passed_on() -> None:
    places = FairPlaces(1)
    guests = Guests(places)
    for name in ("a1", "b1", "c1"):
        await guests.come(name)
    guests._ends["a1"].set()
    await asyncio.sleep(0)  # b1 has the place, and has not gone on yet
    assert places.waiting == 1
    await guests.cancel("b1")
    assert guests.inside == ["a1", "c1"]
    await guests.leave("c1")
    assert places.taken == 0


async def test_waiting_and_leaving_are_told() -> None:
    told: list[int] = []
    places = FairPlaces(1, lambda: told.append(places.waiting))
    guests = Guests(places)
    await guests.come("a1")
    assert told == []
    await guests.come("b1")
    assert told == [1]
    await guests.leave("a1")
    await guests.leave("b1")
    assert told == [1, 0, 0]
