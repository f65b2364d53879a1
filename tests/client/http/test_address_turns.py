"""Which address is asked, and when another one is asked beside it."""

from __future__ import annotations

import asyncio

import pytest

from broker_core.client import ConnectionLost, ServerRefused
from broker_core.client.failover.address_health import AddressHealth
from broker_core.client.http import address_turns
from broker_core.client.http.address_turns import AddressTurns
from broker_core.errors import ServerError
from broker_core.service_addresses import Address
from tests.support.clock import AGES, time_passes
from tests.support.eventually import eventually, turns

A, B = ("a", 1), ("b", 1)


class Service:
    """Addresses that answer with their name, or are silent, or fail."""

    def __init__(self, *addresses: Address, patience: float = AGES) -> None:
        self.health = AddressHealth(addresses, first_backoff=AGES, longest_backoff=AGES)
        self.turns = AddressTurns(self.health, patience=patience)
        self.asked: list[Address] = []
        self.given_up: list[Address] = []
        self.silent: set[Address] = set()
        self.errors: dict[Address, Exception] = {}

    async def ask(self) -> str:
        return await self.turns.ask(self._answer)

    async def _answer(self, address: Address) -> str:
        self.asked.append(address)
        try:
            if address in self.silent:
                await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.given_up.append(address)
            raise
        if address in self.errors:
            raise self.errors[address]
        return address[0]


@pytest.fixture
def no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(address_turns, "_PATIENCE", 0.001)


async def asked_of(service: Service, count: int) -> asyncio.Task[str]:
    asking = asyncio.create_task(service.ask())
    await eventually(lambda: len(service.asked) == count)
    return asking


@pytest.mark.usefixtures("no_patience")
async def test_a_silent_address_has_the_next_one_asked_beside_it_and_is_left() -> None:
    service = Service(A, B)
    service.silent.add(A)
    for _ in range(4):
        assert await service.ask() == "b"
    assert service.asked.count(A) <= 1
    assert service.given_up == [A] * service.asked.count(A)


async def test_an_address_that_answered_last_time_has_more_time(monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service(A, B, patience=AGES)
    monkeypatch.setattr(address_turns, "_PATIENCE", 10 * AGES)
    for _ in range(2):
        await service.ask()
    assert sorted(service.asked) == [A, B]
    first = service.asked[0]
    service.silent.add(first)
    asking = await asked_of(service, 3)
    time_passes(monkeypatch, 0.9 * AGES)
    await turns(10)
    assert service.asked[2:] == [first]
    time_passes(monkeypatch, 0.2 * AGES)
    assert await asking == ({"a", "b"} - {first[0]}).pop()
    assert service.health.is_down(first)


async def test_an_address_that_says_something_is_not_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(address_turns, "_PATIENCE", AGES)
    service = Service(A, B)
    service.silent |= {A, B}
    asking = await asked_of(service, 1)
    time_passes(monkeypatch, 0.9 * AGES)
    service.turns.received(service.asked[0])
    service.turns.received(("a broker that a redirect named", 1))
    time_passes(monkeypatch, 0.9 * AGES)
    await turns(10)
    assert len(service.asked) == 1
    asking.cancel()
    await asyncio.wait([asking])
    assert not any(map(service.health.is_down, (A, B))), "it was only given up"


@pytest.mark.parametrize(("addresses", "down"), [((A,), set()), ((A, B), {A, B})])
async def test_a_question_that_is_given_up(
    monkeypatch: pytest.MonkeyPatch, addresses: tuple[Address, ...], down: set[Address]
) -> None:
    """What was silent is tried last from now on; the only address has no other beside it, and gets no pause."""
    service = Service(*addresses)
    service.silent |= {A, B}
    asking = await asked_of(service, 1)
    time_passes(monkeypatch, 1.1)
    await eventually(lambda: len(service.asked) == len(addresses))
    time_passes(monkeypatch, 1.1)
    asking.cancel()
    await asyncio.wait([asking])
    assert sorted(service.given_up) == sorted(addresses)
    assert {address for address in addresses if service.health.is_down(address)} == down


async def test_one_that_fails_is_followed_by_the_next_at_once() -> None:
    service = Service(A, B)
    service.errors[A] = ConnectionLost("refused")
    for _ in range(3):
        assert await service.ask() == "b"
    service.errors[B] = ServerRefused(ServerError.TopicNotFound, "no")
    with pytest.raises(ServerRefused):
        await service.ask()
    assert not service.health.is_down(B), "it answered"
    service.errors[B] = ConnectionLost("refused too")
    with pytest.raises(ConnectionLost, match="refused too"):
        await service.ask()
