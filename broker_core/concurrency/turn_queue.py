"""A queue in which keys take turns: the first item of each comes before the second one of any."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Hashable
from typing import Any, Generic, Protocol, TypeVar

__all__ = ["InTurn", "TurnQueue"]


class InTurn(Protocol):
    """A waiting item: keys take turns; ``turn`` is its place, which the queue sets."""

    key: Hashable
    turn: tuple[int, int]


T = TypeVar("T", bound=InTurn)


def _turn(item: Any) -> tuple[int, int]:
    turn: tuple[int, int] = item.turn
    return turn


class TurnQueue(Generic[T]):
    """Items by rounds, and within a round in the order of their arrival; they may be removed from anywhere."""

    def __init__(self) -> None:
        self._items: list[T] = []
        self._round = 0  # of the last item that was taken from the head
        self._arrived = 0
        self._keys: dict[
            Hashable, list[int]
        ] = {}  # by waiting key: the number of items, and the last one's round

    def __len__(self) -> int:
        return len(self._items)

    @property
    def head(self) -> T:
        """The first item; :exc:`IndexError` if nothing waits."""
        return self._items[0]

    def first(self, count: int) -> list[T]:
        """The first items, at most ``count``."""
        return self._items[:count]

    def put(self, item: T) -> None:
        """Add an item at the end of its round: the one after that of the key's last item, or the next."""
        waits = self._keys.setdefault(item.key, [0, self._round])
        waits[0] += 1
        waits[1] = max(waits[1], self._round) + 1
        self._arrived += 1
        item.turn = (waits[1], self._arrived)
        insort(self._items, item, key=_turn)

    def take(self, item: T) -> None:
        """Remove the head, whose turn it was."""
        self._round = item.turn[0]
        self.remove(item)

    def remove(self, item: T) -> bool:
        """Remove an item from any place; returns whether it was there."""
        place = bisect_left(self._items, item.turn, key=_turn)
        if place == len(self._items) or self._items[place] is not item:
            return False
        del self._items[place]
        waits = self._keys[item.key]
        waits[0] -= 1
        if not waits[0]:
            del self._keys[item.key]
        return True
