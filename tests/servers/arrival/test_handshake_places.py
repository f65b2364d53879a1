from __future__ import annotations

import asyncio

import pytest

from broker_core.servers.arrival import handshake_places
from broker_core.servers.arrival.handshake_places import HandshakePlaces


class Guests:
    """Handshakes that end when a test ends them."""

    def __init__(self, places: HandshakePlaces) -> None:
        self._places = places
        self.inside: list[str] = []
        self.ends: dict[str, asyncio.Event] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}

    async def come(self, name: str, host: str = "a") -> None:
        self.ends[name] = asyncio.Event()
        self.tasks[name] = asyncio.create_task(self._stay(name, host))
        await self.settle()

    async def leave(self, name: str) -> None:
        self.ends[name].set()
        await self.settle()

    async def cancel(self, name: str) -> None:
        self.tasks[name].cancel()
        await self.settle()

    async def settle(self) -> None:
        for _ in range(10):
            await asyncio.sleep(0)

    async def _stay(self, name: str, host: str) -> None:
        async with self._places.place(host):
            self.inside.append(name)
            await self.ends[name].wait()


async def test_no_more_than_there_are_places() -> None:
    places = HandshakePlaces(2)
    guests = Guests(places)
    for name in "abc":
        await guests.come(name)
    assert guests.inside == ["a", "b"]
    assert (places.taken, places.waiting) == (2, 1)
    await guests.leave("a")
    assert guests.inside == ["a", "b", "c"]
    for name in "bc":
        await guests.leave(name)


async def test_a_storm_of_one_address_waits_for_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handshake_places, "_PATIENCE", 0.0)
    monkeypatch.setattr(handshake_places, "_AGAIN", 0.0)
    places = HandshakePlaces(2)
    guests = Guests(places)
    for name in "abcd":
        await guests.come(name)
    assert places._timer is not None  # it has been looked, and nobody was closed
    assert guests.inside == ["a", "b"]
    assert not any(task.done() for task in guests.tasks.values())
    for name in "abcd":
        await guests.leave(name)
    assert guests.inside == ["a", "b", "c", "d"]


async def test_in_the_end_a_storm_makes_room_for_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_PATIENCE", "_MOST_PATIENCE", "_AGAIN"):
        monkeypatch.setattr(handshake_places, name, 0.0)
    guests = Guests(HandshakePlaces(1))
    await guests.come("a")
    await guests.come("b")
    await asyncio.wait_for(asyncio.wait({guests.tasks["a"]}), 60)
    assert isinstance(guests.tasks["a"].exception(), TimeoutError)
    await guests.settle()
    assert guests.inside == ["a", "b"]
    await guests.leave("b")


async def test_places_are_shared_between_two_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handshake_places, "_PATIENCE", 0.0)
    monkeypatch.setattr(handshake_places, "_AGAIN", 0.0)
    places = HandshakePlaces(4)
    guests = Guests(places)
    for name in ("a1", "a2", "a3", "a4"):
        await guests.come(name, "a")
    for name in ("b1", "b2", "b3", "b4"):
        await guests.come(name, "b")
    for _ in range(20):
        await guests.settle()
    assert [name for name, task in guests.tasks.items() if task.done()] == ["a1", "a2"]
    assert guests.inside[4:] == ["b1", "b2"]
    for name in ("a3", "a4", "b1", "b2", "b3", "b4"):
        await guests.leave(name)
    for name in ("a1", "a2"):
        assert isinstance(guests.tasks[name].exception(), TimeoutError)
    assert (places.taken, places.waiting) == (0, 0)


async def test_addresses_take_turns() -> None:
    places = HandshakePlaces(1)
    guests = Guests(places)
    for name in ("first", "many 1", "many 2", "many 3"):
        await guests.come(name, "many")
    await guests.come("one", "one")
    for _ in range(5):
        await guests.leave(guests.inside[-1])
    assert guests.inside.index("one") < guests.inside.index("many 2")
    assert places.taken == 0


async def test_those_who_are_gone_take_no_place() -> None:
    places = HandshakePlaces(1)
    guests = Guests(places)
    for name in "abcd":
        await guests.come(name)
    await guests.cancel("b")
    assert places.waiting == 2
    # Both in one turn of the loop: the place of a is free while c has just been cancelled.
    guests.tasks["c"].cancel()
    await guests.leave("a")
    assert guests.inside == ["a", "d"]
    await guests.cancel("d")
    assert (places.taken, places.waiting) == (0, 0)


async def test_a_place_that_was_given_to_who_is_cancelled_returns() -> None:
    places = HandshakePlaces(1)
    guests = Guests(places)
    for name in "abc":
        await guests.come(name)
    guests.ends["a"].set()
    await asyncio.sleep(0)
    assert (places.waiting, guests.inside) == (1, ["a"])
    guests.tasks["b"].cancel()  # it has its place, and has not run since
    await guests.settle()
    assert guests.inside == ["a", "c"]
    await guests.leave("c")
    assert places.taken == 0


async def test_a_handshake_ends_after_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handshake_places, "_LONGEST", 0.0)
    places = HandshakePlaces(1)
    with pytest.raises(TimeoutError):
        async with places.place("a"):
            await asyncio.Event().wait()
    assert places.taken == 0


async def test_the_oldest_makes_room_where_others_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handshake_places, "_PATIENCE", 0.0)
    monkeypatch.setattr(handshake_places, "_AGAIN", 0.0)
    places = HandshakePlaces(2)
    guests = Guests(places)
    await guests.come("a")
    await guests.come("b")
    await guests.settle()
    assert not guests.tasks["a"].done()  # nobody waits
    await guests.come("c", "other")
    await asyncio.wait_for(asyncio.wait({guests.tasks["a"]}), 60)
    with pytest.raises(TimeoutError):
        guests.tasks["a"].result()
    await guests.settle()
    assert "c" in guests.inside
    assert not guests.tasks["b"].done()
    for name in "bc":
        await guests.leave(name)
