"""Places for relayed lookups: bounded in all, and a busy address leaves some for the others."""

from __future__ import annotations

import random

import pytest

from broker_core.upstream.pulsar.relay_places import RelayPlaces


def filled(places: RelayPlaces, address: str) -> int:
    count = 0
    while places.take(address):
        count += 1
    return count


def test_one_address_gets_half_of_all_places() -> None:
    places = RelayPlaces(100)
    assert filled(places, "a") == 50
    assert filled(places, "b") == 25


@pytest.mark.parametrize("busy", [1, 2, 5, 9])
def test_busy_addresses_share_equally_and_leave_a_part(busy: int) -> None:
    places = RelayPlaces(1000)
    addresses = [f"10.0.0.{number}" for number in range(busy)]
    got = dict.fromkeys(addresses, 0)
    while any(taken := [places.take(address) for address in addresses]):
        for address, one in zip(addresses, taken, strict=True):
            got[address] += one
    assert max(got.values()) - min(got.values()) <= 1
    assert abs(min(got.values()) - 1000 // (busy + 1)) <= 1
    assert places.take("10.0.1.1"), "an address that has none gets a place"


def test_what_is_given_back_can_be_taken_again_and_leaves_nothing() -> None:
    places = RelayPlaces(50)
    taken: list[str] = []
    random.seed(7)
    for _ in range(5000):
        address = f"h{random.randrange(20)}"
        if random.random() < 0.6 and places.take(address):
            taken.append(address)
        elif taken:
            places.give_back(taken.pop(random.randrange(len(taken))))
        assert places.taken == len(taken) <= places.limit
    for address in taken:
        places.give_back(address)
    assert places.taken == 0
    assert not places._by_address


def test_a_refused_address_takes_no_memory() -> None:
    places = RelayPlaces(1)
    assert places.take("a")
    for number in range(100):
        assert not places.take(f"h{number}")
    assert len(places._by_address) == 1


def test_without_places_nobody_gets_one() -> None:
    assert not RelayPlaces(0).take("a")
