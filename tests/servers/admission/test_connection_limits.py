from __future__ import annotations

from broker_core.servers.admission.connection_limits import ConnectionLimits


def test_places_in_all() -> None:
    places = ConnectionLimits(2)
    assert [places.take("a"), places.take("b"), places.take("a")] == [None, None, "connections"]
    places.give_back("a")
    assert places.take("c") is None
    assert places.taken == 2


def test_places_of_an_address() -> None:
    places = ConnectionLimits(None, 2)
    assert [places.take(host) for host in ("10.0.0.1", "::ffff:10.0.0.1", "10.0.0.1")] == [
        None,
        None,
        "address",
    ]
    assert places.take("10.0.0.2") is None
    assert places.taken == 3
    places.give_back("::ffff:10.0.0.1")
    assert places.take("10.0.0.1") is None


def test_who_is_refused_takes_nothing_and_nothing_is_remembered_of_who_left() -> None:
    places = ConnectionLimits(3, 1)
    for _ in range(3):
        assert places.take("a") is None
        assert places.take("a") == "address"
        places.give_back("a")
    assert places.taken == 0
    assert not places._by_address


def test_without_bounds_everybody_gets_in() -> None:
    places = ConnectionLimits()
    assert not any(places.take("a") for _ in range(1000))
    places.per_address = 1000
    assert places.take("a") == "address"
    for _ in range(1000):
        places.give_back("a")
    assert not places._by_address
