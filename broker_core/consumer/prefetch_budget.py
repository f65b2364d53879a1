"""Numbers of messages that the client may hold of each topic, so that all topics together stay within one number."""

from __future__ import annotations

from typing import Final

__all__ = ["PrefetchBudget"]

#: The size of the official client's own queue for a topic: more makes nothing faster.
_MOST: Final = 1000


class PrefetchBudget:
    """Divides ``total`` messages among topics. A topic that is opened gets an equal share of one half, as long as there
    is so much left: the other half is for topics that come later. Each topic has one message at least.
    """

    def __init__(self, total: int) -> None:
        if total < 1:
            raise ValueError(f"a queue has room for 1 message at least, not {total}")
        self.total: Final = total
        #: The messages of all topics together.
        self.granted = 0

    def share(self, topics: int) -> int:
        """The share of one of so many topics, in messages."""
        return max(1, min(_MOST, self.total // (2 * max(1, topics))))

    def grant(self, topics: int) -> int:
        """The messages of one more topic, of ``topics`` in all."""
        size = max(1, min(self.share(topics), self.total - self.granted))
        self.granted += size
        return size

    def give_back(self, size: int) -> None:
        """Take ``size`` messages back from a topic that is closed."""
        self.granted -= size

    def fits(self, size: int, topics: int) -> bool:
        """Whether a topic's ``size`` is right among ``topics``: within half and twice its share."""
        share = self.share(topics)
        return size <= 2 * share and 2 * size >= min(share, self.total - self.granted)
