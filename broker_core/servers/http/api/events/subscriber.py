"""One stream of events as its feed sees it: what waits to be written, and whether it has to begin anew."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

from broker_core.access.asker import Asker
from broker_core.errors import ListingFailed

__all__ = ["ChangeEvent", "Subscriber"]

#: Changes that wait for a reader, and their bytes: one that is further behind gets all topics anew.
_EVENTS: Final = 64
_BYTES: Final = 1024 * 1024


class ChangeEvent:
    """The events of one change as they are written to all streams: from one topics hash to the next."""

    __slots__ = ("__weakref__", "after", "before", "frame")

    def __init__(self, before: str, after: str, frame: bytes) -> None:
        self.before = before
        self.after = after
        self.frame = frame


class Subscriber:
    """A stream. ``lags`` says that it needs all topics, whatever it has; ``ended`` why it is over."""

    __slots__ = (
        "_bytes",
        "_events",
        "asker",
        "ended",
        "failure",
        "is_closed",
        "is_suspended",
        "lags",
        "woken",
    )

    def __init__(self, asker: Asker) -> None:
        self.asker = asker
        self.lags = False
        #: What the client is to be told once; the topics stay as they are.
        self.failure: ListingFailed | None = None
        self.ended: ListingFailed | None = None
        self.is_closed = False
        self.is_suspended = False
        self.woken = asyncio.Event()
        self._events: deque[ChangeEvent] = deque()
        self._bytes = 0

    def push(self, event: ChangeEvent | None) -> None:
        """One more change; ``None``: one that is not told by itself."""
        if self.lags or self.is_suspended:
            return
        if event is None or len(self._events) >= _EVENTS or self._bytes + len(event.frame) > _BYTES:
            self.lag()
            return
        self._events.append(event)
        self._bytes += len(event.frame)
        self.woken.set()

    def next(self) -> ChangeEvent | None:
        """The oldest change that waits."""
        if not self._events:
            return None
        event = self._events.popleft()
        self._bytes -= len(event.frame)
        return event

    def lag(self) -> None:
        """All topics have to be sent anew."""
        self.begin_anew()
        self.lags = True
        self.woken.set()

    def begin_anew(self) -> None:
        """What comes from here on is after the topics of this moment."""
        self.lags = False
        self._events.clear()
        self._bytes = 0

    def fail(self, failure: ListingFailed) -> None:
        """Tell of a failure; all topics stay."""
        self.failure = failure
        self.woken.set()

    def suspend(self, failure: ListingFailed) -> None:
        """Tell nothing of topics until :meth:`resume`: nobody can say whether the client may see them."""
        if not self.is_suspended:
            self.begin_anew()
            self.is_suspended = True
            self.fail(failure)

    def resume(self) -> None:
        """Go on with all topics after :meth:`suspend`."""
        if self.is_suspended:
            self.is_suspended = False
            self.lag()

    def end(self, failure: ListingFailed) -> None:
        """End the stream, and say why."""
        self.ended = failure
        self.woken.set()

    def close(self) -> None:
        """End the stream without a word: the client comes back, if it likes."""
        self.is_closed = True
        self.woken.set()
