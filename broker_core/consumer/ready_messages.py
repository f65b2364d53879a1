"""The messages that wait to be received: one of each topic at most, in turns."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Hashable
from typing import Generic, TypeVar

__all__ = ["ReadyMessages"]

Topic = TypeVar("Topic", bound=Hashable)
Message = TypeVar("Message")


class ReadyMessages(Generic[Topic, Message]):
    """A queue with one place for each topic: as a topic's next message comes after the messages of all other topics, no
    topic keeps another from being received. For one event loop.
    """

    def __init__(self) -> None:
        self._messages: OrderedDict[Topic, Message] = OrderedDict()
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._end: BaseException | None = None

    def __len__(self) -> int:
        return len(self._messages)

    def put(self, topic: Topic, message: Message, *, first: bool = False) -> None:
        """Add the message of a topic that has none here; ``first`` puts it before all others."""
        assert topic not in self._messages
        self._messages[topic] = message
        if first:
            self._messages.move_to_end(topic, last=False)
        self._wake()

    def discard(self, topic: Topic) -> Message | None:
        """Take the message of a topic out; ``None`` if it has none."""
        return self._messages.pop(topic, None)

    def end(self, error: BaseException) -> None:
        """Raise ``error`` from each ``get`` from now on, whatever is still here."""
        self._end = self._end or error
        self._messages.clear()
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_result(None)

    def get_now(self) -> tuple[Topic, Message] | None:
        """The message that has waited longest, or ``None``."""
        if self._end is not None:
            raise self._end
        return self._messages.popitem(last=False) if self._messages else None

    async def get(self) -> tuple[Topic, Message]:
        """The message that has waited longest, and its topic. Cancelled, it has taken none."""
        while (found := self.get_now()) is None:
            waiting = asyncio.get_running_loop().create_future()
            self._waiting.append(waiting)
            try:
                await waiting
            except BaseException:
                # It was woken for a message, so another waiting caller must be woken instead.
                if waiting.done() and not waiting.cancelled() and self._messages:
                    self._wake()
                raise
            finally:
                if waiting in self._waiting:
                    self._waiting.remove(waiting)
        return found

    def _wake(self) -> None:
        while self._waiting:
            waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_result(None)
                return
