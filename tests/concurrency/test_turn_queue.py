"""Keys take turns in the queue, in any order of arrivals and departures."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_core.concurrency.fair_places import TurnQueue


@dataclass(eq=False)
class Item:
    key: Hashable
    turn: tuple[int, int] = (0, 0)


def queued(*keys: str) -> tuple[TurnQueue[Item], list[Item]]:
    queue: TurnQueue[Item] = TurnQueue()
    items = [Item(key) for key in keys]
    for item in items:
        queue.put(item)
    return queue, items


def taken(queue: TurnQueue[Item]) -> str:
    order = ""
    while queue.items:
        head = queue.items[0]
        order += str(head.key)
        queue.take(head)
    return order


@pytest.mark.parametrize(
    ("arrive", "leave"),
    [
        ("", ""),
        ("aaa", "aaa"),
        ("aaaab", "abaaa"),
        ("aabbc", "abcab"),
        ("abab", "abab"),
        ("aaabbbc", "abcabab"),
    ],
)
def test_the_order(arrive: str, leave: str) -> None:
    queue, _ = queued(*arrive)
    assert taken(queue) == leave
    assert not queue._keys


def test_who_comes_late_is_not_behind_the_rounds_of_others() -> None:
    queue, _ = queued(*"aaaaaa")
    for _ in range(3):
        queue.take(queue.items[0])
    for key in "bb":
        queue.put(Item(key))
    assert taken(queue) == "abab" + "a"


def test_nothing_is_removed_twice() -> None:
    queue, (first, second) = queued("a", "a")
    assert queue.remove(first)
    assert not queue.remove(first)
    assert not queue.remove(Item("a", second.turn))
    assert queue.items == [second]
    queue.take(second)
    assert not queue.items


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 20))))
def test_nobody_waits_for_more_than_one_item_of_each_other_key(steps: list[tuple[str, int]]) -> None:
    """From the moment in which a key has its first item in the queue."""
    queue: TurnQueue[Item] = TurnQueue()
    waiting: list[Item] = []
    before: dict[int, list[Hashable]] = {}
    for key, number in steps:
        if number < 12 or not waiting:
            item = Item(key)
            if all(other.key != key for other in waiting):
                before[id(item)] = []
            queue.put(item)
            waiting.append(item)
        elif number < 17:
            head = queue.items[0]
            queue.take(head)
            waiting.remove(head)
            for seen in before.values():
                seen.append(head.key)
            seen = before.pop(id(head), [])
            assert all(seen.count(other) <= 2 for other in set(seen))
        else:
            gone = waiting.pop(number % len(waiting))
            assert queue.remove(gone)
            before.pop(id(gone), None)
        assert sorted(map(id, queue.items)) == sorted(map(id, waiting))
