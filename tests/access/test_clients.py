"""The registry of clients: identity, rates, recent namespaces, memory, and which of them an operator means."""

from __future__ import annotations

import gc

import pytest

from broker_core.access.asker import Asker
from broker_core.access.clients import Client, ClientFilter, Clients, note_held
from broker_core.memory.permit_budget import PermitBudget
from tests.support.clock import SetClock


def test_rates_are_those_of_the_last_minute() -> None:
    time = SetClock()
    client = Client("pulsar", "192.0.2.1:1", clock=time)
    for _ in range(60):
        time.now += 1
        client.asks("LOOKUP")
        client.sent(10)
    assert client.rates() == pytest.approx((1.0, 10.0), rel=0.05)
    time.now += 30
    assert client.rates()[0] == pytest.approx(0.5, rel=0.1)
    time.now += 120
    assert client.rates() == (0.0, 0.0)
    assert client.age == 210


def test_a_namespace_counts_for_a_minute_and_their_number_is_bounded() -> None:
    time = SetClock()
    client = Client("pulsar", "192.0.2.1:1", clock=time)
    client.asks("LOOKUP", "a/b")
    time.now += 59
    client.asks("LOOKUP", "c/d")
    assert client.namespaces() == ["c/d", "a/b"]
    time.now += 2
    assert client.namespaces() == ["c/d"]
    for number in range(10_000):
        time.now += 0.001
        client.asks("LOOKUP", f"t/{number}")
    assert client.namespaces()[0] == "t/9999"
    assert len(client.namespaces()) <= 64
    client.asks("LOOKUP", "x" * 5000)  # the name of none
    assert client.namespaces()[0] == "t/9999"


def test_a_request_under_way_is_seen_until_it_ends() -> None:
    time = SetClock()
    client = Client("http", "192.0.2.1:1", clock=time)
    with pytest.raises(KeyError), client.asking("listTopics", "a/b"):
        time.now += 100
        (asked,) = client.under_way.values()
        assert (asked.operation, asked.namespace, time.now - asked.since) == ("listTopics", "a/b", 100)
        assert client.namespaces() == ["a/b"]
        raise KeyError
    assert not client.under_way
    assert client.namespaces() == []


async def test_memory_is_what_its_permits_count_now() -> None:
    budget = PermitBudget(1000)
    client = Client("kafka", "192.0.2.1:1", buffered=lambda: 5)
    assert client.memory == 5
    permit = await budget.acquire(100)
    note_held(client, permit)
    note_held(object(), permit)  # a connection of a test
    assert client.memory == 105
    permit.release()
    assert client.memory == 5
    other = await budget.acquire(10)
    client.holds(other)
    del other
    gc.collect()
    assert client.memory == 5


@pytest.mark.parametrize(
    ("which", "is_meant"),
    [
        ({"role": "team-a"}, True),
        ({"role": "team-*"}, True),
        ({"role": "alice"}, True),  # the proxy asks for it
        ({"role": "team"}, False),
        ({"address": "192.0.2.7"}, True),
        ({"address": "192.0.2.7:53"}, True),
        ({"address": "192.0.2.7:54"}, False),
        ({"address": "192.0.2.0/24"}, True),
        ({"address": "192.0.2.8"}, False),
        ({"address": "::1"}, False),
        ({"namespace": "acme/*"}, True),
        ({"namespace": "acme/other"}, False),
        ({"role": "team-a", "namespace": "acme/other"}, False),
        ({}, True),
    ],
)
def test_who_is_meant(which: dict[str, str], *, is_meant: bool) -> None:
    client = Client("pulsar", "192.0.2.7:53")
    client.identified(Asker("team-a", "alice"))
    client.asks("LOOKUP", "acme/orders")
    meant = ClientFilter(**which)
    assert meant(client) is is_meant
    assert meant.is_given is bool(which)


def test_an_ipv6_client_and_one_of_a_unix_socket() -> None:
    mapped = Client("pulsar", "[::ffff:192.0.2.7]:53")
    assert ClientFilter(address="192.0.2.7")(mapped)
    assert ClientFilter(address="[::ffff:192.0.2.7]:53")(mapped)
    assert ClientFilter(address="2001:db8::/32")(Client("http", "[2001:db8::1]:9"))
    assert not ClientFilter(address="192.0.2.7")(Client("http", ""))
    with pytest.raises(ValueError, match="must be an address such as"):
        ClientFilter(address="nowhere")


def test_who_is_there() -> None:
    clients = Clients()
    one = clients.opened("pulsar", "a", end=lambda: None, buffered=lambda: 0)
    two = clients.opened("kafka", "b", end=lambda: None, buffered=lambda: 0)
    assert (list(clients), len(clients)) == ([one, two], 2)
    for _ in range(2):
        clients.closed(one)
    assert list(clients) == [two]
