"""Places for requests under way: one more than there are is refused."""

from __future__ import annotations

__all__ = ["RequestSlots"]


class RequestSlots:
    """Places for requests under way (``maxConcurrentLookupRequest``); a ``limit`` of 0 or less is none."""

    __slots__ = ("limit", "taken")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.taken = 0

    @property
    def are_taken(self) -> bool:
        return 0 < self.limit <= self.taken

    def take(self) -> bool:
        if self.are_taken:
            return False
        self.taken += 1
        return True

    def give_back(self) -> None:
        self.taken -= 1
