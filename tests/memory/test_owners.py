"""Data attached to objects by identity, until the objects end in any thread."""

from __future__ import annotations

import gc
import threading

from broker_core.memory.bounded_cache import Owners


class Thing:
    """Something that ends."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Thing)

    def __hash__(self) -> int:
        return 0


def test_it_is_told_by_identity() -> None:
    owners: Owners[str] = Owners()
    one, other = Thing(), Thing()
    assert one == other
    assert owners.put(one, "one") is None
    assert (owners.get(one), owners.get(other), len(owners._held)) == ("one", None, 1)
    assert owners.put(one, "again") == "one"
    assert list(owners.ended()) == []


def test_the_end_gives_it_back_once() -> None:
    told: list[int] = []
    owners: Owners[int] = Owners(lambda: told.append(1))
    things = [Thing() for _ in range(5)]
    for number, thing in enumerate(things):
        owners.put(thing, number)
    del thing
    threads = [threading.Thread(target=things.pop) for _ in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    gc.collect()
    assert sorted(owners.ended()) == [2, 3, 4]
    assert list(owners.ended()) == []
    assert (len(owners._held), len(told)) == (2, 3)


def test_a_new_object_of_the_same_number_keeps_its_own() -> None:
    owners: Owners[int] = Owners()
    given = 0
    for number in range(200):
        thing = Thing()
        if owners.put(thing, number) is not None:
            given += 1
        del thing
    given += len(list(owners.ended()))
    assert given == 200
    assert len(owners._held) == 0
