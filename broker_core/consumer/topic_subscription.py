"""The subscription of one topic: its consumer is opened, closed and opened again until it is as wanted."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, TypeAlias

import pulsar
from pulsar.asyncio import PulsarException

from broker_core.concurrency import backoff, ended_within
from broker_core.consumer.official_calls import call, on_loop
from broker_core.consumer.prefetch_budget import PrefetchBudget
from broker_core.consumer.ready_messages import ReadyMessages

__all__ = ["OpenConsumer", "SharedParts", "TopicSubscription"]

_log = logging.getLogger("broker_core.consumer")
_OK: Final = pulsar.Result.Ok
#: Seconds between attempts to open a consumer: the first pause, which doubles, and the longest.
_FIRST_PAUSE: Final = 1.0
_LONGEST_PAUSE: Final = 60.0
#: Seconds that a client has to call back for a consumer that is closed.
_LAST_CALL: Final = 5.0

#: A topic's full name and the size of its queue in messages, to a consumer of the C++ client.
OpenConsumer: TypeAlias = Callable[[str, int], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class SharedParts:
    """The parts that all topics of a consumer share. ``topics`` counts the topics, ``forget`` is called with one that
    is closed for good; ``places`` bounds the topics that are opened at once.
    """

    open: OpenConsumer
    ready: ReadyMessages[TopicSubscription, Any]
    budget: PrefetchBudget
    places: asyncio.Semaphore
    topics: Callable[[], int]
    forget: Callable[[TopicSubscription], None]
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)


class TopicSubscription:
    """One topic. Its consumer has one message here at most, in the queue of all topics; the others stay in the client,
    which asks the broker for no more than the queue of this topic holds.
    """

    __slots__ = (
        "_armed",
        "_callback",
        "_consumer",
        "_ended",
        "_held",
        "_opened",
        "_reopen",
        "_seeking",
        "_shared",
        "_size",
        "_tried",
        "_unsettled",
        "_wake",
        "error",
        "task",
        "topic",
        "wanted",
    )

    def __init__(self, topic: str, shared: SharedParts) -> None:
        self.topic: Final = topic
        #: The reason why it is not open; ``None`` if it is, or was not tried yet.
        self.error: Exception | None = None
        self._shared = shared
        self.wanted = False
        self._reopen = False
        self._consumer: Any = None
        self._callback: Callable[..., None] | None = None
        self._opened = 0
        self._ended: asyncio.Future[None] | None = None
        self._size = 0
        self._armed = False
        self._seeking = False
        self._held: Any = None
        self._unsettled = 0
        self._wake = asyncio.Event()
        #: The task that opens or closes it at the moment.
        self.task: asyncio.Task[None] | None = None
        self._tried: asyncio.Future[Exception | None] | None = None

    @property
    def is_open(self) -> bool:
        return self._consumer is not None

    def want(self, wanted: bool) -> asyncio.Future[Exception | None]:
        """Ask for it to be open, or closed. The result comes after the first attempt: its failure or ``None``."""
        if wanted and not self.wanted:
            self.error = None
        self.wanted = wanted
        if self._tried is None or self._tried.done():
            self._tried = self._shared.loop.create_future()
        tried = self._tried
        self._start()
        return tried

    def give_up(self) -> None:
        """Open it no more; its consumer is left to :meth:`end`."""
        self.wanted = False
        self._wake.set()

    async def end(self) -> None:
        """Close the consumer, before the client is closed.

        It waits until the client has called back for the requested message: a client that is closed with such calls
        under way keeps its memory, a thread and files for ever.
        """
        consumer = self._consumer
        if consumer is None:
            return
        self._ended = self._shared.loop.create_future()
        try:
            await call(consumer.close_async)
        except PulsarException as error:
            _log.info("closing the consumer of %s: %s", self.topic, error)
        if self._armed:
            await asyncio.wait([self._ended], timeout=_LAST_CALL)
        if consumer is self._consumer:
            self._let_go()

    def resize(self) -> None:
        """Open it anew with the queue that is right for the number of topics, if nobody can notice: no message of it
        is here, or was received and not settled yet.
        """
        fits = self._shared.budget.fits(self._size, self._shared.topics())
        if self._armed and not self._unsettled and not self._seeking and not fits:
            self._reopen = True
            self._start()

    def taken(self) -> None:
        """Ask for the next message, since the last was taken from the queue."""
        self._unsettled += 1
        self._arm()

    async def acknowledge(self, message: Any) -> bool:
        """Acknowledge a message, or the id of one, of the C++ client; false if the topic is not open."""
        return await self._settle("acknowledge_async", message, max(0, self._unsettled - 1))

    async def acknowledge_cumulative(self, message: Any) -> bool:
        """Acknowledge all messages up to this one; false if the topic is not open."""
        return await self._settle("acknowledge_cumulative_async", message, 0)

    def negative_acknowledge(self, message: Any) -> bool:
        """Have a message delivered again; false if the topic is not open, when it will be anyway."""
        if self._consumer is None:
            return False
        self._consumer.negative_acknowledge(message)
        self._unsettled = max(0, self._unsettled - 1)
        return True

    def redeliver(self) -> None:
        """Have all messages delivered again that are not acknowledged."""
        if self._consumer is None:
            return
        waiting = self._shared.ready.discard(self)
        self._consumer.redeliver_unacknowledged_messages()
        self._unsettled = 0
        if waiting is not None:
            self._arm()

    async def seek(self, position: Any) -> None:
        """Go on at another position: a message id of the C++ client, or a time in ms.

        Messages from before do not come any more, unless it fails. Raises ``PulsarException``.
        """
        consumer = self._consumer
        if consumer is None:
            raise PulsarException(pulsar.Result.NotConnected, f"{self.topic} is not open")
        if self._seeking:
            raise PulsarException(pulsar.Result.NotAllowedError, f"{self.topic} is about to seek already")
        future: asyncio.Future[None] = self._shared.loop.create_future()

        # The client calls back in order: messages before this call are from the old position, later ones from the new.
        def sought(result: Any, _: Any = None) -> None:
            if consumer is self._consumer:
                self._seeking = False
                held, self._held = self._held, None
                if result != _OK and held is not None:
                    self._shared.ready.put(self, held, first=True)
                elif not self._armed:
                    self._arm()
                if result == _OK:
                    self._unsettled = 0
            if not future.done():
                future.set_result(None) if result == _OK else future.set_exception(PulsarException(result))

        self._seeking = True
        self._held = self._shared.ready.discard(self)
        consumer.seek_async(position, on_loop(self._shared.loop, sought))
        await future

    async def unsubscribe(self) -> None:
        """Delete the subscription at the broker; its consumer is closed then. Raises ``PulsarException``."""
        if self._consumer is not None:
            await call(self._consumer.unsubscribe_async)

    async def last_message_id(self) -> Any:
        """The id of the last message of the topic, of the C++ client. Raises ``PulsarException``."""
        if self._consumer is None:
            raise PulsarException(pulsar.Result.NotConnected, f"{self.topic} is not open")
        return await call(self._consumer.get_last_message_id_async)

    async def _settle(self, function: str, message: Any, unsettled: int) -> bool:
        consumer = self._consumer
        if consumer is None:
            return False
        self._unsettled = unsettled
        await call(getattr(consumer, function), message)
        return True

    def _arm(self) -> None:
        """Ask the client for the next message, which may have arrived already."""
        if self._consumer is not None and not self._armed and not self._seeking:
            self._armed = True
            self._consumer.receive_async(self._callback)

    def _received(self, opened: int, result: Any, message: Any) -> None:
        if opened != self._opened or self._consumer is None:
            return  # closed meanwhile
        self._armed = False
        if self._ended is not None:
            if not self._ended.done():
                self._ended.set_result(None)
        elif result != _OK:
            if self.wanted:
                self._lose(PulsarException(result))
        elif self._seeking:
            self._held = message
        else:
            self._shared.ready.put(self, message)

    def _lose(self, error: Exception) -> None:
        """Open it anew: the client has given the consumer up."""
        self._let_go()
        self._fail(error)
        self._start()

    def _let_go(self) -> Any:
        consumer, self._consumer, self._callback = self._consumer, None, None
        self._shared.ready.discard(self)
        self._shared.budget.give_back(self._size)
        self._size, self._unsettled, self._armed, self._seeking, self._held = 0, 0, False, False, None
        return consumer

    def _fail(self, error: Exception) -> None:
        self.error = error
        if self.wanted:  # not if the client is closed, which fails all calls under way
            _log.warning("cannot consume from %s, which is tried again: %s", self.topic, error)

    def _start(self) -> None:
        self._wake.set()
        if self.task is None:
            self.task = self._shared.loop.create_task(self._converge())

    async def _converge(self) -> None:
        failures = 0 if self.error is None else 1
        try:
            while True:
                self._wake.clear()
                if failures and self.wanted:
                    await ended_within(backoff(failures, _FIRST_PAUSE, _LONGEST_PAUSE), self._wake.wait())
                if self.wanted and self._consumer is None:
                    failures = 0 if await self._open() else failures + 1
                elif self._consumer is not None and (self._reopen or not self.wanted):
                    await self._close()
                else:
                    break
        finally:
            self.task = None
            self._settle_try()
        if not self.wanted:
            self._shared.forget(self)

    def _settle_try(self) -> None:
        if self._tried is not None and not self._tried.done():
            self._tried.set_result(self.error)

    async def _open(self) -> bool:
        shared = self._shared
        async with shared.places:
            if not self.wanted:
                return True
            size = shared.budget.grant(shared.topics())
            try:
                consumer = await shared.open(self.topic, size)
            except Exception as error:  # noqa: BLE001  # wrong options fail with what the C++ client's wrapper raises
                shared.budget.give_back(size)
                self._fail(error)
                self._settle_try()
                return False
            except BaseException:
                shared.budget.give_back(size)
                raise
        self._consumer, self._size, self.error = consumer, size, None
        self._opened += 1
        # The client keeps it. No way leads from it to the consumer: no garbage collector would see that circle.
        self._callback = on_loop(shared.loop, partial(self._received, self._opened))
        self._settle_try()
        self._arm()
        return True

    async def _close(self) -> None:
        self._reopen = False
        consumer = self._let_go()
        async with self._shared.places:
            try:
                await call(consumer.close_async)
            except PulsarException as error:
                _log.info("closing the consumer of %s: %s", self.topic, error)
