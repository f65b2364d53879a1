"""The subscriptions of all topics that a consumer has, and the messages that come from them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from broker_core.consumer.prefetch_budget import PrefetchBudget
from broker_core.consumer.ready_messages import ReadyMessages
from broker_core.consumer.topic_subscription import OpenConsumer, SharedParts, TopicSubscription

__all__ = ["TopicSubscriptions"]

_PARTITION: Final = re.compile(r"(.+)-partition-[0-9]+", re.DOTALL)


class TopicSubscriptions:
    """All topics of a consumer; for the running event loop.

    ``queue_size`` bounds the messages that the client holds, of all topics together; ``places`` bounds the topics that
    are opened or closed at once.
    """

    def __init__(self, open_consumer: OpenConsumer, *, queue_size: int, places: int) -> None:
        self.ready: Final[ReadyMessages[TopicSubscription, Any]] = ReadyMessages()
        self.budget: Final = PrefetchBudget(queue_size)
        self._topics: dict[str, TopicSubscription] = {}
        self._shared = SharedParts(
            open_consumer,
            self.ready,
            self.budget,
            asyncio.Semaphore(places),
            lambda: len(self._topics),
            self._forget,
        )

    def __len__(self) -> int:
        return len(self._topics)

    def __iter__(self) -> Iterator[TopicSubscription]:
        return iter(list(self._topics.values()))

    def of(self, topic: str) -> TopicSubscription | None:
        """The subscription that gets the messages of a topic, by its full name: its own, or for a partition the whole
        topic's. A listing may have the topic alone, which has partitions at the broker.
        """
        known = self._topics.get(topic)
        if known is None and (partition := _PARTITION.fullmatch(topic)) is not None:
            known = self._topics.get(partition[1])
        return known

    def add(self, topics: Iterable[str]) -> list[asyncio.Future[Exception | None]]:
        """Open these topics; returns the result of the first attempt for each."""
        added = []
        for topic in topics:
            if topic not in self._topics:
                self._topics[topic] = TopicSubscription(topic, self._shared)
            added.append(self._topics[topic])
        # Only now, so that each gets its share of all.
        return [each.want(True) for each in added]

    def remove(self, topics: Iterable[str]) -> None:
        """Close these topics. Their subscriptions stay at the broker."""
        for topic in topics:
            if (known := self._topics.get(topic)) is not None:
                known.want(False)

    def resize(self) -> None:
        """Give the topics queues that are right for their number, as far as nobody can notice."""
        for known in self._topics.values():
            known.resize()

    async def take(self) -> tuple[TopicSubscription, Any]:
        """The next message of the C++ client, and its subscription. Cancelled, it has taken none."""
        topic, message = await self.ready.get()
        topic.taken()
        return topic, message

    def take_now(self) -> tuple[TopicSubscription, Any] | None:
        """The next message and its subscription, if one has arrived."""
        found = self.ready.get_now()
        if found is not None:
            found[0].taken()
        return found

    def give_up(self) -> list[asyncio.Task[None]]:
        """Open no more topics; returns the tasks that still work."""
        for known in self._topics.values():
            known.give_up()
        return [known.task for known in self._topics.values() if known.task is not None]

    async def end(self) -> None:
        """Close all consumers at once, before the client is closed."""
        await asyncio.gather(*(known.end() for known in self._topics.values()))
        self._topics.clear()

    def _forget(self, topic: TopicSubscription) -> None:
        self._topics.pop(topic.topic, None)
