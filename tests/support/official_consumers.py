"""Stand-ins for the official client's consumers: topics with messages in memory, called back as the C++ client does."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any

import pulsar
from pulsar.asyncio import PulsarException

__all__ = ["FakeBroker", "FakeConsumer", "FakeMessage"]

_OK = pulsar.Result.Ok
_CLOSED = pulsar.Result.AlreadyClosed


class FakeMessage:
    """A message with a text, of a topic."""

    def __init__(self, topic: str, text: str) -> None:
        self.topic, self.text = topic, text

    def topic_name(self) -> str:
        return self.topic

    def data(self) -> bytes:
        return self.text.encode()

    def __repr__(self) -> str:
        return f"{self.topic}:{self.text}"


class FakeConsumer:
    """One topic: an own queue of messages, of which ``asked`` are awaited."""

    def __init__(self, broker: FakeBroker, topic: str, size: int) -> None:
        self.broker, self.topic, self.size = broker, topic, size
        self.unacked: list[FakeMessage] = []
        self.waiting: Callable[..., None] | None = None
        self.closed = False
        self.seeks: list[tuple[Any, Callable[..., None]]] = []
        self.nacked: list[FakeMessage] = []

    @property
    def messages(self) -> deque[FakeMessage]:
        return self.broker.messages.setdefault(self.topic, deque())

    def receive_async(self, callback: Callable[..., None]) -> None:
        assert self.waiting is None, "one message of a topic is asked for at a time"
        if self.closed:
            callback(_CLOSED, None)
            return
        self.waiting = callback
        self.feed()

    def feed(self) -> None:
        """Deliver a message that is here to a receive that waits for it."""
        if self.waiting is not None and self.messages:
            callback, self.waiting = self.waiting, None
            self.unacked.append(self.messages.popleft())
            callback(_OK, self.unacked[-1])

    def acknowledge_async(self, message: FakeMessage, callback: Callable[..., None]) -> None:
        if message in self.unacked:
            self.unacked.remove(message)
        self.broker.acknowledged.append(message)
        callback(_OK)

    def acknowledge_cumulative_async(self, message: FakeMessage, callback: Callable[..., None]) -> None:
        done = self.unacked[: self.unacked.index(message) + 1]
        del self.unacked[: len(done)]
        self.broker.acknowledged += done
        callback(_OK)

    def negative_acknowledge(self, message: FakeMessage) -> None:
        self.nacked.append(message)

    def redeliver_unacknowledged_messages(self) -> None:
        self.give_back()

    def give_back(self) -> None:
        self.messages.extendleft(reversed(self.unacked))
        self.unacked.clear()

    def seek_async(self, position: Any, callback: Callable[..., None]) -> None:
        self.seeks.append((position, callback))

    def get_last_message_id_async(self, callback: Callable[..., None]) -> None:
        callback(_OK, pulsar.MessageId.latest)

    def unsubscribe_async(self, callback: Callable[..., None]) -> None:
        self.broker.unsubscribed.append(self.topic)
        self.lose()
        callback(_OK)

    def close_async(self, callback: Callable[..., None]) -> None:
        self.lose()
        self.broker.closed.append(self.topic)
        callback(_OK)

    def lose(self) -> None:
        """Closed: what is not acknowledged goes back, and receives that wait get the error."""
        if not self.closed:
            self.closed = True
            self.give_back()
            if self.waiting is not None:
                callback, self.waiting = self.waiting, None
                callback(_CLOSED, None)


class FakeBroker:
    """Opens consumers; ``refused`` are topics that it refuses, so often."""

    def __init__(self) -> None:
        self.messages: dict[str, deque[FakeMessage]] = {}
        self.consumers: dict[str, FakeConsumer] = {}
        self.opened: list[tuple[str, int]] = []
        self.closed: list[str] = []
        self.acknowledged: list[FakeMessage] = []
        self.unsubscribed: list[str] = []
        self.refused: dict[str, int] = {}
        self.opening = self.most_opening = 0
        self.gate = asyncio.Event()
        self.gate.set()

    async def open(self, topic: str, size: int) -> FakeConsumer:
        """A consumer of a topic, with a queue of ``size``."""
        self.opening += 1
        self.most_opening = max(self.opening, self.most_opening)
        await asyncio.sleep(0)
        await self.gate.wait()
        self.opening -= 1
        if self.refused.get(topic, 0):
            self.refused[topic] -= 1
            raise PulsarException(pulsar.Result.ConsumerBusy)
        assert topic not in self.consumers or self.consumers[topic].closed, "two consumers of a topic"
        self.opened.append((topic, size))
        self.consumers[topic] = FakeConsumer(self, topic, size)
        return self.consumers[topic]

    def publish(self, topic: str, *texts: str) -> None:
        """Append messages to a topic."""
        self.messages.setdefault(topic, deque()).extend(FakeMessage(topic, text) for text in texts)
        if topic in self.consumers and not self.consumers[topic].closed:
            self.consumers[topic].feed()
