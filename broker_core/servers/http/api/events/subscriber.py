"""One stream of events as its feed sees it: the events to write, and whether it has to begin anew."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

from broker_core.access import Asker
from broker_core.errors import ListingFailed
from broker_core.listing import Selection
from broker_core.servers.http.api.events.event_text import EVENTS, EventRenderer
from broker_core.service import ChangeEvent

__all__ = ["Subscriber"]

#: Changes that wait for a reader, and their bytes: a reader that is further behind gets all topics anew.
_EVENTS: Final = 64
_BYTES: Final = 1024 * 1024


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

    renderer: Final[EventRenderer] = EVENTS

    def __init__(self, asker: Asker, *, lags: bool = False) -> None:
        self.asker = asker
        self.lags = lags
        #: A failure to report to the client once; the topics stay as they are.
        self.failure: ListingFailed | None = None
        self.ended: ListingFailed | None = None
        self.is_closed = False
        self.is_suspended = False
        self.woken = asyncio.Event()
        self._events: deque[bytes] = deque()
        self._bytes = 0

    def changed(self, event: ChangeEvent | None, _before: Selection | None = None) -> None:
        """Add a change; ``None``: a change that was not rendered."""
        if self.lags or self.is_suspended:
            return
        frames = None if event is None else event.rendered.get(EVENTS)
        size = 0 if frames is None else sum(map(len, frames))
        if frames is None or len(self._events) >= _EVENTS or self._bytes + size > _BYTES:
            self.lag()
            return
        for frame in frames:
            self._events.append(frame)
        self._bytes += size
        self.woken.set()

    @property
    def is_up_to_date(self) -> bool:
        """Whether nothing waits to be written."""
        return not (self.lags or self._events or self.is_suspended)

    def next(self) -> bytes | None:
        """The oldest change that waits, as it is written."""
        if not self._events:
            return None
        frame = self._events.popleft()
        self._bytes -= len(frame)
        return frame

    def lag(self) -> None:
        """Note that all topics have to be sent anew."""
        self.begin_anew()
        self.lags = True
        self.woken.set()

    def begin_anew(self) -> None:
        """Drop the waiting changes: all topics of this moment are sent anew."""
        self.lags = False
        self._events.clear()
        self._bytes = 0

    def fail(self, failure: ListingFailed) -> None:
        """Report a failure; all topics stay."""
        self.failure = failure
        self.woken.set()

    def suspend(self, failure: ListingFailed) -> None:
        """Send no topics until :meth:`resume`: it is unknown whether the client may see them."""
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

    def waits(self, before: Selection) -> bool:  # noqa: ARG002  # the protocol's
        """Always false: a stream writes at once, in the turn of its task."""
        return False

    def changed_later(self, event: ChangeEvent | None, before: Selection, after: Selection) -> None:
        """Do nothing: the stream has not waited."""

    def select_by_properties(self) -> None:
        """Do nothing: a stream has the properties of its request."""

    def close(self) -> None:
        """End the stream without an event: the client may connect again."""
        self.is_closed = True
        self.woken.set()
