"""What the gateway and its principals know of the brokers, and what is in the log of it."""

from __future__ import annotations

import asyncio

import pytest
from structlog.testing import capture_logs

from broker_core.upstream.pulsar.broker_health import BrokerHealth
from tests.support.clock import AGES, time_passes

A, B, C = ("a", 1), ("b", 1), ("c", 1)


def health(first: float = AGES, longest: float = 8 * AGES) -> BrokerHealth:
    return BrokerHealth([A, B, C, A], first_backoff=first, longest_backoff=longest)


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


async def test_a_lost_connection_leaves_the_state_unknown() -> None:
    addresses = health()
    addresses.succeeded(B)
    addresses.lost(B)
    assert addresses.states()["b:1"] == "unknown"
    assert "the connection was lost" in str(addresses.problem)
