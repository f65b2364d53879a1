"""One topic list watcher of a client (PIP-145): the topics that it has of a followed question, and its next update.

It is sent each change as it comes, while its client reads. A client that does not read is sent nothing until it does,
and then the difference to its topics; if it stops reading again soon after, its connection is closed. The topics of a
client are known after each update, so that no update leaves it with another set than the hash says.
"""

from __future__ import annotations

import asyncio
from typing import Final, Protocol

import structlog

from broker_core.access import Asker
from broker_core.errors import Cause, ListingFailed
from broker_core.listing import Selection
from broker_core.names import NamespaceName
from broker_core.pipeline import Ended
from broker_core.plugin_api import ListingRequest
from broker_core.service.following.follower import ChangeEvent, ChangeRenderer, Shortage
from broker_core.service.following.listing_feed import ListingFeed
from broker_core.service.following.listing_feeds import ListingFeeds

__all__ = ["Outlet", "Watcher"]

_log = structlog.get_logger(__name__)

#: Seconds in which a client that was slow once may not be slow again.
_SLOW_AGAIN: Final = 60.0
#: Seconds until an update that found no memory is tried again.
_PAUSE: Final = 1.0


class Outlet(Protocol):
    """The client of watchers, as they write to it."""

    @property
    def asker(self) -> Asker: ...

    def write(self, watcher_id: int, update: bytes, /) -> bool:
        """Send an update from the renderer; false: there is no room for it now."""

    @property
    def has_unread(self) -> bool:
        """Whether there is no room because the client does not read; else other clients have it."""

    async def room(self) -> None:
        """Wait until there may be room again."""

    def close(self, reason: str, event: str, /) -> None:
        """Close the connection. ``reason`` is a label of the metrics."""


class Watcher:
    """The watcher that the client numbers ``watcher_id``; :meth:`opened` begins its updates."""

    __slots__ = (
        "_base",
        "_feed",
        "_feeds",
        "_has_to_wait",
        "_is_closed",
        "_is_opening",
        "_is_suspended",
        "_outlet",
        "_slow_at",
        "_task",
        "renderer",
        "watcher_id",
    )

    def __init__(
        self, feeds: ListingFeeds, outlet: Outlet, renderer: ChangeRenderer, watcher_id: int
    ) -> None:
        self._feeds = feeds
        self._outlet = outlet
        self.renderer = renderer
        self.watcher_id = watcher_id
        self._feed: ListingFeed | None = None
        #: The client's topics, if they are not the feed's answer.
        self._base: Selection | None = None
        self._is_opening = True
        self._is_closed = False
        self._has_to_wait = False
        self._is_suspended = False
        self._slow_at = float("-inf")
        self._task: asyncio.Task[None] | None = None

    @property
    def asker(self) -> Asker:
        return self._outlet.asker

    @property
    def namespace(self) -> NamespaceName | None:
        """The namespace of its question, once the client has had an answer."""
        return None if self._feed is None else self._feed.question.namespace

    @property
    def is_up_to_date(self) -> bool:
        """Whether the client has the feed's answer once it has read all that was written to it."""
        return not self._is_opening and self._base is None and not self._is_suspended

    async def open(self, question: ListingRequest) -> tuple[Selection, str]:
        """The answer to send the client, and its hash. Raises :exc:`~broker_core.errors.ListingFailed`."""
        feed = await self._feeds.join(question, self)
        if self._is_closed:
            self._feeds.leave(feed, self)
            raise ListingFailed("The watcher was closed", cause=Cause.BAD_REQUEST, reason="bad_request")
        self._feed = feed
        assert feed.selection is not None
        return feed.selection, feed.topics_hash

    def up_to_date_now(self) -> tuple[Ended, str] | None:
        """The function to call at the end, and the hash, if it is known at once that the client is up to date."""
        feed = self._feed
        if feed is None or self._is_opening or self._base is not None or self._is_suspended:
            return None
        ended = feed.repeat_now(self._outlet.asker)
        return None if ended is None else (ended, feed.topics_hash)

    async def reconcile(self) -> tuple[Selection, str, bool]:
        """The current answer, its hash, and whether the client has it once it has read all that was written to it.

        Nothing more is written until :meth:`opened`. Raises :exc:`~broker_core.errors.ListingFailed`.
        """
        feed = self._feed
        assert feed is not None
        await feed.refresh(self.asker)
        assert feed.selection is not None
        was_up_to_date = self.is_up_to_date
        self._stop()
        self._is_opening = True
        if self._base is None:
            self._base = feed.selection
        return feed.selection, feed.topics_hash, was_up_to_date

    def opened(self, has: Selection | None) -> None:
        """Note the topics that the client has once it has read all that was written; ``None``: as before."""
        if self._feed is None:
            return
        self._is_opening = False
        if has is not None:
            self._base = has
        self._catch_up()

    def leave(self) -> None:
        """End the watcher: it is closed, or its connection."""
        self._stop()
        self._is_opening = self._is_closed = True
        feed, self._feed = self._feed, None
        if feed is not None:
            self._feeds.leave(feed, self)

    # -- as the feed sees it

    def changed(self, event: ChangeEvent | None, before: Selection | None) -> None:
        if self._is_opening or self._base is not None:
            return
        updates = None if event is None else event.rendered.get(self.renderer)
        if updates == ():
            return  # nothing of it is for watchers
        if self._is_suspended or updates is None or len(updates) > 1:
            self._base = before
            self._catch_up()
        elif not self._outlet.write(self.watcher_id, updates[0]):
            self._base = before
            if self._outlet.has_unread:
                now = asyncio.get_running_loop().time()
                if now - self._slow_at < _SLOW_AGAIN:
                    self._outlet.close("slow", "peer reads updates of its watcher too slowly")
                    return
                self._slow_at = now
            self._has_to_wait = True
            self._catch_up()

    def waits(self, before: Selection) -> bool:
        if not self._is_opening and self._base is None:
            self._base = before
        return True

    def changed_later(self, event: ChangeEvent | None, before: Selection, after: Selection) -> None:
        is_catching_up = self._task is not None and not self._task.done()
        if self._base is not before or self._is_opening or is_catching_up:
            return  # what it was sent since, or will be, leads to a later answer
        if self._feed is None or self._feed.selection is not after:
            self._catch_up()
        else:
            self._base = None
            self.changed(event, before)

    def fail(self, failure: ListingFailed) -> None:
        """Report a failure to the watcher, whose topics stay."""

    def select_by_properties(self) -> None:
        self._outlet.close("watch_ended", "topics of the namespace are selected by properties from now on")

    def suspend(self, _failure: ListingFailed) -> None:
        self._is_suspended = True

    def resume(self) -> None:
        if self._is_suspended:
            self._is_suspended = False
            self._catch_up()

    def end(self, failure: ListingFailed) -> None:
        # No client of Java's hears of the end of a watcher alone: it asks again over its next connection.
        self._outlet.close("watch_ended", f"client may not watch any more: {failure.message}")

    def close(self) -> None:
        self._outlet.close("watch_ended", "what the client watches is to be asked for anew")

    # -- catching up

    def _catch_up(self) -> None:
        feed = self._feed
        if feed is not None and self._base is feed.selection:
            self._base = None
        elif self._base is not None and (self._task is None or self._task.done()):
            self._task = asyncio.get_running_loop().create_task(self._send_difference())

    def _stop(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()

    async def _send_difference(self) -> None:
        feed, outlet = self._feed, self._outlet
        assert feed is not None
        shortage = Shortage()
        try:
            while (base := self._base) is not None and not self._is_suspended:
                if self._has_to_wait:
                    self._has_to_wait = False
                    await outlet.room()
                    continue
                if feed.selection is base:
                    self._base = None
                    return
                try:
                    joined = await feed.joined(base, self)
                except ListingFailed as failure:  # no memory
                    if shortage.goes_on():
                        outlet.close("watch_ended", f"a watcher's update finds no room: {failure.message}")
                        return
                    await asyncio.sleep(_PAUSE)
                    continue
                shortage.is_over()
                for update, has in joined.updates:
                    if update and not outlet.write(self.watcher_id, update):
                        self._has_to_wait = True  # and then it is the difference to the answer of that moment
                        break
                    self._base = has
        except Exception:  # noqa: BLE001 - whatever it is, the client must not take what it has for all
            _log.exception("a watcher failed", namespace=str(feed.question.namespace))
            outlet.close("internal", "a watcher failed")
