"""The consumer by a pattern for programs without an event loop."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any, Self, TypeVar

import pulsar

from broker_core.client import LoopThread
from broker_core.consumer.regex_consumer import ConsumerClosed, Position, RegexConsumer

__all__ = ["BlockingRegexConsumer"]

T = TypeVar("T")


class BlockingRegexConsumer:
    """:class:`~broker_core.consumer.RegexConsumer` without ``await``: the same arguments, methods and errors.

    ``with BlockingRegexConsumer(service_url, pattern, subscription_name) as consumer: for message in consumer: ...``

    One consumer serves any number of threads. It works in a thread of its own, which ends with :meth:`close` or
    ``with``. Ctrl-C interrupts a call; a message that it takes at this moment is delivered again later on. Inside a
    running event loop a call raises :exc:`RuntimeError`.
    """

    def __init__(self, service_url: str, topics_pattern: Any, subscription_name: str, **options: Any) -> None:
        self._consumer = RegexConsumer(service_url, topics_pattern, subscription_name, **options)
        self._thread = LoopThread("BlockingRegexConsumer", "RegexConsumer", self._consumer.close)
        self._closed = False

    @property
    def topics(self) -> tuple[str, ...]:
        """The full names of the topics that messages come from at the moment."""
        return self._call(lambda: self._consumer.topics)

    @property
    def failures(self) -> dict[str, Exception]:
        """The topics that cannot be opened, which are tried again and again, with the last failure of each."""
        return self._call(lambda: self._consumer.failures)

    @property
    def is_watching(self) -> bool:
        """Whether the server reports topics that come and go now; otherwise it is asked each period."""
        return self._consumer.is_watching

    @property
    def last_listing_error(self) -> Exception | None:
        """The failure of the last listing; ``None`` if it was answered."""
        return self._consumer.last_listing_error

    def start(self) -> None:
        """Find the topics and subscribe to them; ``with`` does it."""
        try:
            self._thread.run(self._consumer.start)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close all consumers. The subscriptions stay, and unacknowledged messages are delivered again."""
        self._closed = True
        self._thread.close()

    def unsubscribe(self) -> None:
        """Delete the subscription of every topic that is open, at the brokers, and close."""
        try:
            self._thread.run(self._consumer.unsubscribe)
        finally:
            self.close()

    def receive(self, timeout: float | None = None) -> pulsar.Message:
        """The next message, of the topics in turns."""
        self._check()
        return self._thread.run(lambda: self._consumer.receive(timeout))

    def batch_receive(self, max_messages: int = 100, timeout: float | None = None) -> list[pulsar.Message]:
        """The messages that have arrived, once there is one; an empty list after ``timeout`` seconds without one."""
        self._check()
        return self._thread.run(lambda: self._consumer.batch_receive(max_messages, timeout))

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> pulsar.Message:
        try:
            return self.receive()
        except ConsumerClosed:
            raise StopIteration from None

    def acknowledge(self, message: pulsar.Message) -> bool:
        """Acknowledge a message. False if its topic is not open at the moment: it will be delivered again."""
        self._check()
        return self._thread.run(lambda: self._consumer.acknowledge(message))

    def acknowledge_cumulative(self, message: pulsar.Message) -> bool:
        """Acknowledge all messages of a topic up to this one; not for the types Shared and KeyShared."""
        self._check()
        return self._thread.run(lambda: self._consumer.acknowledge_cumulative(message))

    def negative_acknowledge(self, message: pulsar.Message) -> bool:
        """Report that a message failed: it is delivered again after the delay for it, or goes to the dead letters."""
        return self._call(lambda: self._consumer.negative_acknowledge(message))

    def redeliver_unacknowledged_messages(self) -> None:
        """Have all messages delivered again that are not acknowledged."""
        self._call(self._consumer.redeliver_unacknowledged_messages)

    def seek(self, position: Position, topic: str | None = None) -> None:
        """Go on at another position, in one topic or in all that are open."""
        self._check()
        self._thread.run(lambda: self._consumer.seek(position, topic))

    def last_message_id(self, topic: str) -> pulsar.MessageId:
        """The id of the last message of a topic."""
        self._check()
        return self._thread.run(lambda: self._consumer.last_message_id(topic))

    def refresh(self) -> None:
        """Look for topics now."""
        self._call(self._consumer.refresh)

    def _check(self) -> None:
        if self._closed:
            raise ConsumerClosed("the consumer is closed")

    def _call(self, function: Callable[[], T]) -> T:
        """The result of a function, called in the thread of the loop."""
        self._check()

        async def calling() -> T:
            return function()

        return self._thread.run(calling)
