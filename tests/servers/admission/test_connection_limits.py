from __future__ import annotations

from functools import partial

import pytest

from broker_core.servers.admission.connection_limits import ConnectionLimits, ConnectionPlace, RequestSlots


def taken(places: ConnectionLimits, host: str) -> ConnectionPlace:
    place = places.take(host)
    assert isinstance(place, ConnectionPlace)
    return place


def test_places_in_all() -> None:
    places = ConnectionLimits(2)
    first = taken(places, "a")
    taken(places, "b")
    assert places.take("a") == "connections"
    assert ConnectionLimits(0, full="http").take("a") == "http"
    first.give_back()
    first.give_back()  # once is enough
    assert places.taken == 1
    taken(places, "c")
    assert places.taken == 2


def test_places_of_an_address() -> None:
    places = ConnectionLimits(None, 2)
    taken(places, "10.0.0.1")
    mapped = taken(places, "::ffff:10.0.0.1")
    assert places.take("10.0.0.1") == "address"
    taken(places, "10.0.0.2")
    assert places.taken == 3
    mapped.give_back()
    taken(places, "10.0.0.1")


def test_a_refused_client_takes_nothing_and_nothing_is_remembered_of_one_that_left() -> None:
    places = ConnectionLimits(3, 1)
    for _ in range(3):
        place = taken(places, "a")
        assert places.take("a") == "address"
        place.give_back()
    assert places.taken == 0
    assert not places._by_address


def test_without_bounds_everybody_gets_in() -> None:
    places = ConnectionLimits()
    here = [taken(places, "a") for _ in range(1000)]
    places.per_address = 1000
    assert places.take("a") == "address"
    for place in here:
        place.give_back()
    assert not places._by_address


def test_an_idle_connection_gives_its_place_to_another() -> None:
    places = ConnectionLimits(4, idle=10.0)
    ended: list[str] = []
    connections = {name: taken(places, name) for name in "abcd"}
    idle = {"a": None, "b": 9.9, "c": 10.0, "d": 11.0}
    for name, place in connections.items():
        place.idle = partial(idle.get, name)
        place.end = partial(ended.append, name)
    assert [type(places.take("new")) for _ in range(3)] == [ConnectionPlace, ConnectionPlace, str]
    assert ended == ["c", "d"]
    connections["c"].give_back()  # it hears of its end
    assert places.taken == 4
    places.limit = 3  # a connection above the limit stays, and closes no other
    idle["a"] = 20.0
    assert places.take("new") == "connections"
    assert ended == ["c", "d"]


def test_the_connection_used_least_recently_goes_first_and_of_a_full_address_one_of_its_own() -> None:
    places = ConnectionLimits(4, 3, idle=0.0)
    ended: list[int] = []
    here = [taken(places, host) for host in ("other", "full", "full", "full")]
    for number, place in enumerate(here):
        place.idle, place.end = (lambda: 0.0), partial(ended.append, number)
    here[1].used()
    taken(places, "full")  # and it is busy until its connection says otherwise
    assert ended == [2]
    taken(places, "new")
    assert ended == [2, 0]


def test_a_place_is_found_behind_more_busy_connections_than_are_looked_at() -> None:
    places = ConnectionLimits(2000)
    here = [taken(places, "a") for _ in range(2000)]
    here[-1].idle = lambda: 60.0
    asked = [places.take("b") for _ in range(8)]
    assert [isinstance(each, ConnectionPlace) for each in asked] == [False] * 7 + [True]


def test_slots_are_counted() -> None:
    slots = RequestSlots(2)
    assert slots.take()
    assert slots.take()
    assert slots.are_taken
    assert not slots.take()
    slots.give_back()
    assert slots.take()
    assert slots.taken == 2


@pytest.mark.parametrize("limit", [0, -1])
def test_slots_without_a_limit(limit: int) -> None:
    slots = RequestSlots(limit)
    assert all(slots.take() for _ in range(100_000))
    assert not slots.are_taken
