"""The consumer by a pattern for programs without an event loop."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Self, TypeVar

import pulsar

from broker_core.client import BlockingClient, blocking
from broker_core.consumer.regex_consumer import ConsumerClosed, RegexConsumer

__all__ = ["BlockingRegexConsumer"]

T = TypeVar("T")


class BlockingRegexConsumer(BlockingClient[RegexConsumer]):
    """:class:`~broker_core.consumer.RegexConsumer` without ``await``: the same arguments, methods and errors.

    ``with BlockingRegexConsumer(service_url, pattern, subscription_name) as consumer: for message in consumer: ...``

    One consumer serves any number of threads. It works in a thread of its own, which ends with :meth:`close` or
    ``with``. Ctrl-C interrupts a call; a message that it takes at this moment is delivered again later on. Inside a
    running event loop a call raises :exc:`RuntimeError`.
    """

    def __init__(self, service_url: str, topics_pattern: Any, subscription_name: str, **options: Any) -> None:
        super().__init__(RegexConsumer(service_url, topics_pattern, subscription_name, **options))
        self._closed = False

    @property
    def topics(self) -> tuple[str, ...]:
        """The full names of the topics that messages come from at the moment."""
        return self._call(lambda: self._client.topics)

    @property
    def failures(self) -> dict[str, Exception]:
        """The topics that cannot be opened, which are tried again and again, with the last failure of each."""
        return self._call(lambda: self._client.failures)

    @property
    def is_watching(self) -> bool:
        """Whether the server reports topics that come and go now; otherwise it is asked each period."""
        return self._client.is_watching

    @property
    def last_listing_error(self) -> Exception | None:
        """The failure of the last listing; ``None`` if it was answered."""
        return self._client.last_listing_error

    def start(self) -> None:
        """Find the topics and subscribe to them; ``with`` does it."""
        try:
            self._thread.run(self._client.start)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        self.start()
        return self

    def close(self) -> None:
        """Close all consumers. The subscriptions stay, and unacknowledged messages are delivered again."""
        self._closed = True
        super().close()

    def unsubscribe(self) -> None:
        """Delete the subscription of every topic that is open, at the brokers, and close."""
        try:
            self._thread.run(self._client.unsubscribe)
        finally:
            self.close()

    receive = blocking(RegexConsumer.receive)
    batch_receive = blocking(RegexConsumer.batch_receive)
    acknowledge = blocking(RegexConsumer.acknowledge)
    acknowledge_cumulative = blocking(RegexConsumer.acknowledge_cumulative)
    seek = blocking(RegexConsumer.seek)
    last_message_id = blocking(RegexConsumer.last_message_id)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> pulsar.Message:
        try:
            return self.receive()
        except ConsumerClosed:
            raise StopIteration from None

    def negative_acknowledge(self, message: pulsar.Message) -> bool:
        """Report that a message failed: it is delivered again after the delay for it, or goes to the dead letters."""
        return self._call(lambda: self._client.negative_acknowledge(message))

    def redeliver_unacknowledged_messages(self) -> None:
        """Have all messages delivered again that are not acknowledged."""
        self._call(self._client.redeliver_unacknowledged_messages)

    def refresh(self) -> None:
        """Look for topics now."""
        self._call(self._client.refresh)

    def _run(self, work: Callable[[], Awaitable[T]]) -> T:
        if self._closed:
            raise ConsumerClosed("the consumer is closed")
        return super()._run(work)

    def _call(self, function: Callable[[], T]) -> T:
        """The result of a function, called in the thread of the loop."""

        async def calling() -> T:
            return function()

        return self._run(calling)
