"""Places for relayed lookups: bounded in all, and shared out between the asking addresses.

The lookups of one connection are bounded by its reader.
"""

from __future__ import annotations

from collections import Counter

__all__ = ["RelayPlaces"]


class RelayPlaces:
    """At most ``limit`` lookups at a time. An address gets a place while it has fewer than are free.

    So one address alone gets half of all places, ``n`` busy ones get one part in ``n + 1`` each, and the last part is
    always left for an address that has none.
    """

    __slots__ = ("_by_address", "limit", "taken")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.taken = 0
        self._by_address: Counter[str] = Counter()

    def take(self, address: str) -> bool:
        """Take a place, if there is one for this address."""
        if self._by_address[address] >= self.limit - self.taken:
            return False
        self._by_address[address] += 1
        self.taken += 1
        return True

    def give_back(self, address: str) -> None:
        """Give back a place that this address took."""
        self.taken -= 1
        left = self._by_address[address] - 1
        if left:
            self._by_address[address] = left
        else:
            del self._by_address[address]
