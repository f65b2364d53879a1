"""The numbers of connections, in all and from each address, and the decision whether one more gets a place."""

from __future__ import annotations

from collections import Counter
from typing import Literal

from broker_core.access import same_address

__all__ = ["ConnectionLimits"]


class ConnectionLimits:
    """Places for connections: ``limit`` in all (``None``: any number), ``per_address`` from one address (0: any).

    Either may be changed at any time: whoever is connected stays.
    """

    def __init__(self, limit: int | None = None, per_address: int = 0) -> None:
        self.limit = limit
        self.per_address = per_address
        self.taken = 0
        self._by_address: Counter[str] = Counter()

    def take(self, host: str) -> Literal["connections", "address"] | None:
        """Take a place for a connection from ``host``; else which bound there is in the way."""
        if self.limit is not None and self.taken >= self.limit:
            return "connections"
        address = same_address(host)
        if self.per_address and self._by_address[address] >= self.per_address:
            return "address"
        self._by_address[address] += 1
        self.taken += 1
        return None

    def give_back(self, host: str) -> None:
        """Give back a place that a connection from ``host`` took."""
        self.taken -= 1
        address = same_address(host)
        self._by_address[address] -= 1
        if not self._by_address[address]:
            del self._by_address[address]
