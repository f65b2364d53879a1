"""The limit of concurrent requests of a server."""

from __future__ import annotations

import pytest

from broker_core.servers.admission.places import RequestSlots


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
