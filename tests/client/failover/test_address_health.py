"""Which addresses are tried, in which order, and after which pauses."""

from __future__ import annotations

import asyncio

import pytest

from broker_core.client.failover.address_health import AddressHealth
from broker_core.service_addresses import shown_address
from tests.support.clock import AGES, time_passes, time_stands

A, B, C = ("a", 1), ("b", 1), ("c", 1)


def health(first: float = AGES, longest: float = 8 * AGES) -> AddressHealth:
    return AddressHealth([A, B, C, A], first_backoff=first, longest_backoff=longest)


async def test_each_address_is_the_first_one_in_turn() -> None:
    addresses = health()
    assert addresses.addresses == (A, B, C)
    assert {next(iter(addresses.order())) for _ in range(3)} == {A, B, C}
    assert all(sorted(addresses.order()) == [A, B, C] for _ in range(3))


async def test_one_that_failed_rests_for_longer_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    addresses = health()
    pauses = []
    with monkeypatch.context() as patch:
        now = time_stands(patch)
        for _ in range(6):
            addresses.failed(A, "nobody there")
            assert sorted(addresses.order()) == [B, C]
            pauses.append(addresses.known[A].retry_at - now)
    for doubled, pause in zip((1, 2, 4, 8, 8, 8), pauses, strict=True):
        assert 0.499 * doubled * AGES <= pause <= 1.001 * doubled * AGES
    time_passes(monkeypatch, 9 * AGES)
    assert [addresses.order()[-1] for _ in range(3)] == [A] * 3, "the others are tried before it"
    addresses.succeeded(A)
    assert A in {addresses.order()[0] for _ in range(3)}


async def test_the_problem_is_that_of_all() -> None:
    addresses = health()
    assert addresses.problem == "not connected yet"
    for address in (A, B, C):
        addresses.failed(address, f"nobody at {shown_address(address)}")
    assert addresses.problem == "nobody at a:1; nobody at b:1; nobody at c:1"
    addresses.succeeded(B)
    assert addresses.problem is None
    assert addresses.states() == {"a:1": "down", "b:1": "up", "c:1": "down"}


async def test_who_waits_for_an_address_goes_on_when_one_is_up() -> None:
    addresses = health()
    await addresses.until_due()
    for address in (A, B, C):
        addresses.failed(address, "gone")
    waiting = asyncio.create_task(addresses.until_due())
    await asyncio.sleep(0)
    assert not waiting.done()
    addresses.succeeded(C)
    await asyncio.wait_for(waiting, 60)
    assert addresses.order() == [C]
