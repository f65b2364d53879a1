"""Places for requests under way: one more than there are is refused."""

from __future__ import annotations

__all__ = ["RequestSlots"]


class RequestSlots:
    """Places for requests under way (``maxConcurrentLookupRequest``); 0 or less is no limit."""

    __slots__ = ("_limit", "taken")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.taken = 0

    @property
    def limit(self) -> int:
        """The number of places; 0: any number."""
        return max(self._limit, 0)

    @limit.setter
    def limit(self, limit: int) -> None:
        self._limit = limit

    @property
    def are_taken(self) -> bool:
        return 0 < self._limit <= self.taken

    def take(self) -> bool:
        if self.are_taken:
            return False
        self.taken += 1
        return True

    def give_back(self) -> None:
        self.taken -= 1
