"""The consumer of all topics that match a pattern and that the server shows to its properties."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import datetime
from functools import partial
from typing import Any, Final, Self, TypeAlias

import pulsar
import pulsar.asyncio

from broker_core.client import (
    ClientError,
    ClientTls,
    LookupClient,
    LoopBound,
    PatternDiscovery,
    ServerRefused,
    check_seconds,
)
from broker_core.consumer.official_calls import call
from broker_core.consumer.official_client import check_subscribe_options, official_client
from broker_core.consumer.topic_subscription import TopicSubscription
from broker_core.consumer.topic_subscriptions import TopicSubscriptions
from broker_core.counted import counted
from broker_core.errors import BrokerCoreError, ServerError
from broker_core.names import Mode

__all__ = ["ConsumerClosed", "Position", "RegexConsumer"]

_log = logging.getLogger("broker_core.consumer")
#: Seconds that closing may take.
_CLOSE_SECONDS: Final = 30.0

#: A position to go on from: a message id, ``pulsar.MessageId.earliest`` or ``latest``, or a time (a number is in ms).
Position: TypeAlias = Any


class ConsumerClosed(BrokerCoreError):
    """The consumer is closed: no more messages come from it."""


class RegexConsumer(LoopBound):
    """``async with RegexConsumer(service_url, pattern, subscription_name) as consumer: async for message in consumer``

    Lookups and messages go by ``service_url``, listings by ``lookup_url`` (``service_url`` if it is not given);
    ``auth`` and ``tls`` are for both. ``properties`` select topics at the server, and are the consumer's at the broker.
    Topics are looked for every ``period`` seconds; a topic that is missing from ``confirmations`` answers in a row is
    closed, never unsubscribed. The client holds ``queue_size`` messages at most of all topics together, and one more of
    each; ``parallel`` topics are opened at once. ``client_options`` are for ``pulsar.Client``, ``subscribe_options``
    for its ``subscribe``: schema, dead_letter_policy, consumer_name, negative_ack_redelivery_delay_ms ...

    Messages are ``pulsar.Message``. For one event loop; its methods may be called by several tasks.
    """

    def __init__(
        self,
        service_url: str,
        topics_pattern: str | re.Pattern[str],
        subscription_name: str,
        *,
        properties: Mapping[str, str] | None = None,
        period: float = 60.0,
        confirmations: int = 2,
        watch: bool = False,
        mode: Mode = Mode.PERSISTENT,
        consumer_type: pulsar.ConsumerType = pulsar.ConsumerType.Exclusive,
        initial_position: pulsar.InitialPosition = pulsar.InitialPosition.Latest,
        queue_size: int = 10_000,
        parallel: int = 64,
        auth: Any = None,
        tls: ClientTls | None = None,
        lookup_url: str | None = None,
        operation_timeout: float = 30.0,
        connect_timeout: float = 10.0,
        client_options: Mapping[str, Any] | None = None,
        **subscribe_options: Any,
    ) -> None:
        check_subscribe_options(subscribe_options)
        if parallel < 1:
            raise ValueError(f"parallel is 1 topic at least, not {parallel}")
        pattern = topics_pattern if isinstance(topics_pattern, str) else topics_pattern.pattern
        self.service_url: Final = service_url
        self.subscription_name: Final = subscription_name
        timeouts: dict[str, Any] = {
            "operation_timeout": operation_timeout,
            "connect_timeout": connect_timeout,
        }
        self._official = partial(
            official_client, service_url, auth=auth, tls=tls, options=dict(client_options or {}), **timeouts
        )
        self._schema = subscribe_options.pop("schema", None) or pulsar.schema.BytesSchema()
        self._subscribe_options = {
            **subscribe_options,
            "subscription_name": subscription_name,
            "schema": self._schema,
            "properties": dict(properties or {}),
            "consumer_type": consumer_type,
            "initial_position": initial_position,
        }
        self._is_dead_letters = _own_dead_letters(
            subscription_name, subscribe_options.get("dead_letter_policy")
        )
        self._queue_size, self._parallel = queue_size, parallel
        self._lookups = LookupClient(lookup_url or service_url, auth=auth, tls=tls, **timeouts)
        self._discovery: Final = PatternDiscovery(
            self._lookups,
            pattern,
            properties,
            period=period,
            confirmations=confirmations,
            mode=mode,
            on_error=self._listing_failed,
            watches=self._lookups if watch else None,
            on_watching=self._watched,
        )
        self._client: pulsar.asyncio.Client | None = None
        self._topics: TopicSubscriptions | None = None
        self._following: asyncio.Task[None] | None = None
        self._listed = False
        self._closing: asyncio.Task[None] | None = None

    @property
    def topics(self) -> tuple[str, ...]:
        """The full names of the topics that messages come from at the moment."""
        return tuple(known.topic for known in self._topics or () if known.is_open)

    @property
    def failures(self) -> dict[str, Exception]:
        """The topics that cannot be opened, which are tried again and again, with the last failure of each."""
        return {
            known.topic: known.error
            for known in self._topics or ()
            if known.wanted and not known.is_open and known.error is not None
        }

    @property
    def is_watching(self) -> bool:
        """Whether the server reports topics that come and go now; otherwise it is asked each period."""
        return self._discovery.is_watching

    @property
    def last_listing_error(self) -> Exception | None:
        """The failure of the last listing; ``None`` if it was answered."""
        return self._discovery.last_error

    async def start(self) -> None:
        """Find the topics and subscribe to them; ``async with`` does it.

        Raises :exc:`~broker_core.client.ClientError` if the topics cannot be listed within the operation time-out, or
        the service says that it serves no topics, and ``pulsar.asyncio.PulsarException`` if there are topics and none
        can be subscribed to.
        """
        if self._topics is not None or self._closing is not None:
            raise RuntimeError("a RegexConsumer is started once")
        self._client = await self._official()
        self._topics = TopicSubscriptions(self._open, queue_size=self._queue_size, places=self._parallel)
        try:
            first = await anext(self._discovery)
            self._listed = True
            failures = await asyncio.gather(*self._topics.add(self._wanted(first.added)))
            if failures and all(failures):
                await self._raise_refusal(first.added)
                raise next(filter(None, failures))
        except BaseException:
            await self.close()
            raise
        self._following = asyncio.create_task(self._follow(), name=f"topics of {self.subscription_name}")
        self._following.add_done_callback(self._not_followed)

    async def _raise_refusal(self, topics: Iterable[str]) -> None:
        """Raise the text of a service that serves no topics: the official client's error has none."""
        try:
            await self._lookups.lookup(next(iter(topics)))
        except ServerRefused as refused:
            if refused.code is ServerError.NotAllowedError:
                raise
        except ClientError:
            pass

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def close(self) -> None:
        """Close all consumers. The subscriptions stay, and unacknowledged messages are delivered again.

        Cancelled, it goes on without the caller; closing again waits for the same end.
        """
        if self._closing is None:
            self._closing = asyncio.create_task(self._close(), name=f"end of {self.subscription_name}")
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        topics, client = self._topics, self._client
        tasks: list[asyncio.Task[None]] = []
        try:
            await self._stop_following()
            async with asyncio.timeout(_CLOSE_SECONDS):
                if topics is not None:
                    topics.ready.end(ConsumerClosed("the consumer is closed"))
                    tasks = topics.give_up()
                    await topics.end()
                if client is not None:
                    await call(client._client.close_async)  # noqa: SLF001
        except (TimeoutError, pulsar.asyncio.PulsarException) as error:
            _log.info("closing the client of %s: %s", self.service_url, error)
        finally:  # also if the event loop ends meanwhile
            if tasks:
                _, late = await asyncio.wait(tasks, timeout=1)
                for task in late:
                    task.cancel()
            await self._lookups.close()

    async def unsubscribe(self) -> None:
        """Delete the subscription of every topic that is open, at the brokers, and close.

        A topic that is not open keeps its subscription. Raises an :exc:`ExceptionGroup` of all failures, after closing.
        """
        await self._stop_following()
        topics = self._running
        topics.give_up()
        try:
            await _for_each(topics, TopicSubscription.unsubscribe, "subscription")
        finally:
            await self.close()

    async def receive(self, timeout: float | None = None) -> pulsar.Message:
        """The next message, of the topics in turns. Cancelled, it has taken none.

        Raises :exc:`TimeoutError` after ``timeout`` seconds without one, and :exc:`ConsumerClosed`.
        """
        if timeout is not None:
            check_seconds("timeout", timeout)
        async with asyncio.timeout(timeout):
            _, message = await self._running.take()
        return self._message(message)

    async def batch_receive(
        self, max_messages: int = 100, timeout: float | None = None
    ) -> list[pulsar.Message]:
        """The messages that have arrived, once there is one; an empty list after ``timeout`` seconds without one."""
        if max_messages < 1:
            raise ValueError(f"max_messages is 1 at least, not {max_messages}")
        try:
            messages = [await self.receive(timeout)]
        except TimeoutError:
            return []
        while len(messages) < max_messages and (found := self._running.take_now()) is not None:
            messages.append(self._message(found[1]))
        return messages

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> pulsar.Message:
        try:
            return await self.receive()
        except ConsumerClosed:
            raise StopAsyncIteration from None

    async def acknowledge(self, message: pulsar.Message) -> bool:
        """Acknowledge a message. False if its topic is not open at the moment: it will be delivered again."""
        known = self._of(message)
        return known is not None and await known.acknowledge(message._message)  # noqa: SLF001

    async def acknowledge_cumulative(self, message: pulsar.Message) -> bool:
        """Acknowledge all messages of a topic up to this one; not for the types Shared and KeyShared."""
        known = self._of(message)
        return known is not None and await known.acknowledge_cumulative(message._message)  # noqa: SLF001

    def negative_acknowledge(self, message: pulsar.Message) -> bool:
        """Report that a message failed: it is delivered again after the delay for it, or goes to the dead letters."""
        known = self._of(message)
        return known is not None and known.negative_acknowledge(message._message)  # noqa: SLF001

    def redeliver_unacknowledged_messages(self) -> None:
        """Have all messages delivered again that are not acknowledged."""
        for known in self._running:
            known.redeliver()

    async def seek(self, position: Position, topic: str | None = None) -> None:
        """Go on at another position, in one topic or in all that are open.

        A message id of its own needs its ``topic``. If a topic is listed as a whole, and has partitions at the broker,
        one partition goes to a message id only, and all together anywhere else. Raises
        ``pulsar.asyncio.PulsarException``, or an :exc:`ExceptionGroup` of them if several topics fail, and
        :exc:`KeyError` for a topic that is not known.
        """
        where = _seek_argument(position)
        if topic is not None:
            known = self._known(topic)
            if known.topic != topic and _is_of_all_topics(where):
                raise ValueError(
                    f"{topic} is consumed with the other partitions of {known.topic}: name that one"
                )
            await known.seek(where)
            return
        if not _is_of_all_topics(where):
            raise ValueError("the id of a message belongs to one topic: name it")
        opened = [known for known in self._running if known.is_open]
        await _for_each(opened, lambda known: known.seek(where), "position")

    async def last_message_id(self, topic: str) -> pulsar.MessageId:
        """The id of the last message of a topic."""
        return pulsar.MessageId.wrap(await self._known(topic).last_message_id())

    def refresh(self) -> None:
        """Look for topics now."""
        self._discovery.refresh()

    @property
    def _running(self) -> TopicSubscriptions:
        if self._topics is None:
            raise RuntimeError("the RegexConsumer is not started: use it in `async with`")
        return self._topics

    def _of(self, message: pulsar.Message) -> TopicSubscription | None:
        return self._running.of(message.topic_name())

    def _known(self, topic: str) -> TopicSubscription:
        known = self._running.of(topic)
        if known is None:
            raise KeyError(topic)
        return known

    def _message(self, received: Any) -> pulsar.Message:
        message = pulsar.Message()
        message._message, message._schema = received, self._schema  # noqa: SLF001  # as the official client does
        return message

    async def _open(self, topic: str, size: int) -> Any:
        assert self._client is not None
        consumer = await self._client.subscribe(topic, receiver_queue_size=size, **self._subscribe_options)
        return consumer._consumer  # noqa: SLF001

    def _wanted(self, topics: Any) -> list[str]:
        return [topic for topic in topics if not self._is_dead_letters(topic)]

    async def _follow(self) -> None:
        async for change in self._discovery:
            self._running.remove(change.removed)
            self._running.add(self._wanted(change.added))
            self._running.resize()

    def _not_followed(self, following: asyncio.Task[None]) -> None:
        """End the queue of messages if following topics failed: callers of receive get the error instead of waiting."""
        if not following.cancelled() and (error := following.exception()) is not None:
            _log.error("the topics of %s are not followed any more", self._discovery.pattern, exc_info=error)
            self._running.ready.end(error)

    async def _stop_following(self) -> None:
        self._discovery.close()
        following, self._following = self._following, None
        if following is not None:
            following.cancel()
            await asyncio.wait([following])
        await self._discovery.ended()

    def _watched(self, is_watching: bool) -> None:
        _log.info(
            "the topics of %s are %s",
            self._discovery.pattern,
            "watched" if is_watching else f"asked for every {self._discovery.period:g} s",
        )

    def _listing_failed(self, error: Exception) -> None:
        """Let the start fail if the first listing fails for as long as it may be repeated. Later failures pass."""
        if not self._listed:
            raise error


async def _for_each(
    topics: Iterable[TopicSubscription], call_one: Callable[[TopicSubscription], Awaitable[None]], kept: str
) -> None:
    """Call a function for each topic at once. Raises an :exc:`ExceptionGroup` of all failures, whose text says what the
    failed topics have ``kept``.
    """
    results = await asyncio.gather(*map(call_one, topics), return_exceptions=True)
    failed = [each for each in results if isinstance(each, Exception)]
    if failed:
        raise ExceptionGroup(f"{len(failed)} of {counted(len(results), 'topic')} keep their {kept}", failed)


def _own_dead_letters(subscription_name: str, policy: Any) -> Callable[[str], bool]:
    """Whether a topic, or the one of a partition, has the dead letters of this subscription: they match many patterns,
    and a consumer of its own dead letters would send them round for ever.
    """
    if policy is None:
        return lambda _: False
    if policy.dead_letter_topic:
        own = re.compile(rf"{re.escape(_full_name(policy.dead_letter_topic))}(-partition-\d+)?")
    else:
        own = re.compile(rf".*-{re.escape(subscription_name)}-DLQ(-partition-\d+)?", re.DOTALL)
    return lambda topic: own.fullmatch(topic) is not None


def _full_name(topic: str) -> str:
    """The full name that clients make of a short one."""
    if "://" in topic:
        return topic
    return f"persistent://{topic if '/' in topic else f'public/default/{topic}'}"


def _is_of_all_topics(where: Any) -> bool:
    """Whether a position has a meaning in every topic."""
    return isinstance(where, int) or where in (pulsar.MessageId.earliest, pulsar.MessageId.latest)


def _seek_argument(position: Position) -> Any:
    """The argument for the C++ client: a message id of its own, or a time in ms."""
    if isinstance(position, datetime):
        return int(position.timestamp() * 1000)
    if isinstance(position, pulsar.MessageId):
        return position._msg_id  # noqa: SLF001
    return position
