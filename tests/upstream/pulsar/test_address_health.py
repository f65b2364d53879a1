"""Which addresses are tried, in which order, and after which pauses."""

from __future__ import annotations

import asyncio

import pytest
from structlog.testing import capture_logs

from broker_core.upstream.pulsar.address_health import AddressHealth, shown
from tests.support.clock import AGES, time_passes

A, B, C = ("a", 1), ("b", 1), ("c", 1)


def health(first: float = AGES, longest: float = 8 * AGES) -> AddressHealth:
    return AddressHealth([A, B, C, A], first_backoff=first, longest_backoff=longest)


def test_addresses_as_people_write_them() -> None:
    assert shown(("::1", 6650)) == "[::1]:6650"
    assert shown(A) == "a:1"


async def test_each_address_is_the_first_one_in_turn() -> None:
    addresses = health()
    assert addresses.addresses == (A, B, C)
    assert {next(iter(addresses.order())) for _ in range(3)} == {A, B, C}
    assert all(sorted(addresses.order()) == [A, B, C] for _ in range(3))


async def test_one_that_failed_rests_for_longer_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    addresses = health()
    pauses = []
    for _ in range(6):
        addresses.failed(A, "nobody there")
        assert sorted(addresses.order()) == [B, C]
        pauses.append(addresses._known[A].retry_at - asyncio.get_running_loop().time())
    for doubled, pause in zip((1, 2, 4, 8, 8, 8), pauses, strict=True):
        assert 0.5 * doubled * AGES - 1 <= pause <= doubled * AGES
    time_passes(monkeypatch, 9 * AGES)
    assert [addresses.order()[-1] for _ in range(3)] == [A] * 3, "the others are tried before it"
    addresses.succeeded(A)
    assert A in {addresses.order()[0] for _ in range(3)}


async def test_the_problem_is_that_of_all() -> None:
    addresses = health()
    assert addresses.problem == "not connected yet"
    for address in (A, B, C):
        addresses.failed(address, f"nobody at {shown(address)}")
    assert addresses.problem == "nobody at a:1; nobody at b:1; nobody at c:1"
    addresses.succeeded(B)
    assert addresses.problem is None
    assert addresses.states() == {"a:1": "down", "b:1": "up", "c:1": "down"}
    addresses.lost(B)
    assert addresses.states()["b:1"] == "unknown"
    assert "the connection was lost" in str(addresses.problem)


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


async def test_a_reason_is_warned_of_once() -> None:
    addresses = health(first=0.0)
    with capture_logs() as logs:
        for _ in range(3):
            addresses.failed(A, "nobody there")
        addresses.failed(A, "no TLS")
        addresses.succeeded(A)
        addresses.succeeded(A)
    assert [(each["log_level"], each["event"]) for each in logs if each["log_level"] != "debug"] == [
        ("warning", "upstream unreachable"),
        ("warning", "upstream unreachable"),
        ("info", "upstream reachable again"),
    ]


async def test_a_failure_of_a_principal_counts_for_it_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    addresses = health()
    addresses.succeeded(A)
    alice, bob = addresses.for_principal(), addresses.for_principal()
    with capture_logs() as logs:
        alice.failed(A, "closed the connection")
    assert not [each for each in logs if each["log_level"] != "debug"]
    assert A not in alice.order()
    assert (addresses.is_down(A), addresses.problem) == (False, None)
    assert A in {bob.order()[0] for _ in range(3)}
    assert addresses.doubt[A].is_set(), "the watch looks again"
    addresses.failed(B, "gone")
    assert alice.order() == [C]
    assert sorted(bob.order()) == [A, C]
    time_passes(monkeypatch, 9 * AGES)
    assert sorted(alice.order()[1:]) == [A, B], "those that failed are tried last"
    bob.succeeded(B)
    assert addresses.states()["b:1"] == "up"
    assert not alice.is_down(B)


async def test_a_principal_waits_for_what_the_gateway_finds_out() -> None:
    addresses = health()
    alice = addresses.for_principal()
    for address in (A, B, C):
        addresses.failed(address, "gone")
    waiting = asyncio.create_task(alice.until_due())
    await asyncio.sleep(0)
    assert not waiting.done()
    addresses.succeeded(C)
    await asyncio.wait_for(waiting, 60)
    assert alice.order() == [C]


async def test_one_that_is_not_tried_is_not_down() -> None:
    addresses = health()
    with capture_logs() as logs:
        for _ in range(3):
            addresses.untried(A, "no vault")
    assert addresses.states()["a:1"] == "unknown"
    assert "no vault" in str(addresses.problem)
    assert [each["log_level"] for each in logs] == ["warning"]
    assert A in addresses.order()


async def test_addresses_of_others_change_nothing() -> None:
    addresses = health()
    addresses.failed(("x", 1), "gone")
    addresses.succeeded(("x", 1))
    addresses.lost(("x", 1))
    assert set(addresses.states().values()) == {"unknown"}
    assert addresses.of([("x", 1)]).states() == {"x:1": "unknown"}
