"""The followed questions of one namespace: only those are asked again that a change may concern.

A view is one listing of the default lister: a mode and, where listings depend on the asker, a principal. Its changes
say nothing of another view, which may have the same change earlier or later.

An answer that depends on the names and the pattern alone is the same after a change whose names the pattern does not
match. So the names that changed between two versions of the listing are found once, and matched with each pattern; only
a question that they match, or whose answer depends on more, is asked again.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from typing import Final, NamedTuple, TypeAlias

import structlog

from broker_core.access import Asker
from broker_core.concurrency import EACH_COMPARED_BYTE, loop_turn
from broker_core.errors import ListingFailed
from broker_core.listing import (
    Listing,
    difference_bytes,
    has_property_values,
    known_changes,
    selection_difference,
)
from broker_core.names import Mode, NamespaceName, partitioned_local_name
from broker_core.patterns import TopicsPattern, may_match
from broker_core.pipeline import Pipeline, listing_of_now
from broker_core.plugin_api import ListingRequest, is_of_properties
from broker_core.service.following.change_watch import ChangeWatch
from broker_core.service.following.listing_feed import ListingFeed

__all__ = ["FollowedNamespace", "FollowedView", "ViewKey"]

_log = structlog.get_logger(__name__)


class FollowedNamespace:
    """The feeds of one namespace; for one event loop.

    Questions whose changes no signal reports are asked again after ``interval`` seconds.
    """

    def __init__(
        self, pipeline: Pipeline, namespace: NamespaceName, watch: ChangeWatch, interval: float
    ) -> None:
        self._pipeline = pipeline
        self._namespace = namespace
        self._interval = interval
        self.views: dict[ViewKey, FollowedView] = {}
        self._views_of: dict[ListingFeed, FollowedView] = {}
        self._failing: set[ListingFeed] = set()
        self._watch = watch
        self._unwatch = watch.watch(namespace, self._wake)
        self._timer = self._later()

    def close(self) -> None:
        """Wake no feed any more."""
        self._unwatch()
        self._timer.cancel()
        for view in self.views.values():
            view.close()

    def add(self, feed: ListingFeed) -> None:
        """Follow one more question."""
        question = feed.question
        key = ViewKey(question.mode, self._pipeline.lister.place(self._namespace, question.asker))
        view = self.views.get(key)
        if view is None:
            view = self.views[key] = FollowedView(
                self._pipeline, self._namespace, key, self._watch, self._interval, self._report
            )
        self._views_of[feed] = view
        view.add(feed)

    def remove(self, feed: ListingFeed) -> None:
        """Stop following a question."""
        view = self._views_of.pop(feed, None)
        if view is None:
            return
        view.feeds.pop(feed)()
        self._failing.discard(feed)  # without a word: nothing has an answer again by that
        if not view.feeds:
            view.close()
            del self.views[view.key]

    @property
    def is_empty(self) -> bool:
        """Whether no question is followed."""
        return not self.views

    def ask_again(self) -> None:
        """Ask all questions again, which may have other views now."""
        feeds = list(self._views_of)
        for feed in feeds:
            self.remove(feed)
        for feed in feeds:
            self.add(feed)
            feed.wake()

    def _wake(self) -> None:
        """Note that topics, masks or rights may have changed."""
        for view in self.views.values():
            view.wake()

    def _report(self, feed: ListingFeed, failure: ListingFailed | None) -> None:
        """Log the first feed without an answer, and that all have one again."""
        had_failed = bool(self._failing)
        (self._failing.discard if failure is None else self._failing.add)(feed)
        if failure is not None and not had_failed:
            _log.warning(
                "a followed question has no answer: watchers and event streams stay as they were",
                namespace=str(self._namespace),
                pattern=feed.question.topics_pattern,
                reason=failure.message,
            )
        elif had_failed and not self._failing:
            _log.info("followed questions have answers again", namespace=str(self._namespace))

    def _later(self) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(self._interval, self._period)

    def _period(self) -> None:
        self._timer = self._later()
        for view in self.views.values():
            view.look_again()


Report: TypeAlias = Callable[[ListingFeed, ListingFailed | None], None]

#: Seconds between two looks for changes; changes in between are joined.
_GAP: Final = 0.1
#: Changed names up to which matching them costs less than asking.
_MOST: Final = 1000
#: Bytes that are compared to find them.
_MOST_BYTES: Final = 64 * 1024 * 1024
#: Patterns that are matched between two looks at the time of the event loop's turn.
_AT_ONCE: Final = 20


class ViewKey(NamedTuple):
    """A mode, and the default lister's place of the listing: ``None`` if it holds none."""

    mode: Mode
    place: Hashable | None


class FollowedView:
    """The feeds of one view; for one event loop.

    Questions whose changes no signal reports are asked again after ``interval`` seconds. ``report`` is called with a
    feed and the reason why it has no answer, or ``None``.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        namespace: NamespaceName,
        key: ViewKey,
        watch: ChangeWatch,
        interval: float,
        report: Report,
    ) -> None:
        self._pipeline = pipeline
        self._namespace = namespace
        self.key = key
        self._watch = watch
        self._interval = interval
        self.report = report
        #: The feeds, each with the function by which the default lister stops keeping its listing current.
        self.feeds: dict[ListingFeed, Callable[[], None]] = {}
        #: The newest listing that all feeds are known to have the answer of, or were woken for.
        self.seen: Listing | None = None
        self._is_woken = False
        self._task: asyncio.Task[None] | None = None
        self._next = 0.0
        #: Whether topics may be selected by properties.
        self._selects = any(map(is_of_properties, pipeline.lister.depends_on))

    def close(self) -> None:
        """Wake no feed any more."""
        if self._task is not None:
            self._task.cancel()

    def add(self, feed: ListingFeed) -> None:
        """Follow one more question."""
        question = feed.question
        feed.waker = self
        is_first = not self.feeds
        self.feeds[feed] = self._pipeline.lister.follow(self._namespace, question.mode, question.asker)
        if is_first:
            self.wake()  # so that the first change is known: else all questions would be asked again for it

    def wake(self) -> None:
        """Note that topics, masks or rights of the namespace may have changed."""
        self._is_woken = True
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._rounds())

    def has_current(self, asker: Asker) -> bool:
        """Whether a feed that is not woken has the current answer: no change is waited for, or being looked at."""
        self._watch.look_if_late()  # which may wake it
        return (
            not self._is_woken
            and (self._task is None or self._task.done())
            and self._pipeline.lister.is_up_to_date(self._namespace, self.key.mode, asker)
        )

    def period_of(self, question: ListingRequest, asker: Asker) -> float | None:
        """Seconds after which followers of a question have a change at the latest; ``None``: as it comes."""
        if self._pipeline.dispatcher.concerned(self._namespace):
            return self._interval  # the answering lister may report changes, or not
        period = self._pipeline.lister.period(self._namespace, question.mode, asker)
        return self._interval if period == math.inf else period

    def look_again(self) -> None:
        """Look for changes that no signal reports, and drop old listings."""
        for feed in self.feeds:
            if self.key.place is None or self.pattern_of(feed.question) is None:
                feed.wake()
            elif self.seen is not None:
                feed.move_to(self.seen)
        self.wake()

    def pattern_of(self, question: ListingRequest) -> TopicsPattern | None:
        """The pattern of a question whose answer depends on nothing else but the names of its namespace."""
        return self._patterns([question])[0]

    def _patterns(self, questions: Iterable[ListingRequest]) -> list[TopicsPattern | None]:
        """:meth:`pattern_of` of each; what is of the namespace is decided once."""
        options = self._pipeline.options
        if not options.patterns.evaluate or self._pipeline.dispatcher.concerned(self._namespace):
            return [None for _ in questions]
        selecting = options.selecting_keys
        return [
            pattern
            if (pattern := question.pattern) is not None
            and pattern.supported
            and (not question.properties or selecting.isdisjoint(question.properties))
            else None
            for question in questions
        ]

    # -- changed names

    async def _rounds(self) -> None:
        loop = asyncio.get_running_loop()
        while self._is_woken:
            if (pause := self._next - loop.time()) > 0:
                await asyncio.sleep(pause)
            self._is_woken = False
            self._next = loop.time() + _GAP
            await self._round()

    async def _round(self) -> None:
        turn = loop_turn()
        await turn.time()  # there may be many views of a namespace
        if self._selects:
            await self._look_for_values()
        questions = [feed.question for feed in self.feeds]
        patterns = dict(zip(self.feeds, self._patterns(questions), strict=True))
        changed = await self._changed() if any(each is not None for each in patterns.values()) else None
        # A feed that came meanwhile may have an answer of before the look, and is woken.
        for number, feed in enumerate(list(self.feeds)):
            if number % _AT_ONCE == 0:
                await turn.time()
            pattern = patterns.get(feed)
            if changed is None or pattern is None or may_match(pattern, changed):
                feed.wake()

    @property
    def _asker(self) -> Asker:
        """An asker with this view."""
        return next((feed.question.asker for feed in self.feeds), Asker())

    async def _look_for_values(self) -> None:
        """Notify all followers if topics are selected by properties."""
        try:
            listing = await listing_of_now(self._pipeline, self._namespace, Mode.PERSISTENT, self._asker)
        except ListingFailed:
            return
        if listing is not None and has_property_values(listing):
            for feed in list(self.feeds):
                for follower in list(feed.followers):
                    follower.select_by_properties()

    async def _changed(self) -> list[bytes] | None:
        """The names that came or went since the last look, in the form that patterns match; ``None``: any may have."""
        if self.key.place is None:
            return None
        asker, seen = self._asker, self.seen
        self.seen = None
        try:
            now = await listing_of_now(self._pipeline, self._namespace, self.key.mode, asker)
        except ListingFailed:
            return None  # each question is asked then
        except Exception:  # noqa: BLE001 - whatever it is, no question may miss the change
            _log.exception("a followed namespace cannot be listed", namespace=str(self._namespace))
            return None
        if now is None:
            return None
        if not self._pipeline.permits.is_unkept(now):
            self.seen = now
        if seen is None:
            return None
        return [] if now is seen else await self._differing(seen, now, asker)

    async def _differing(self, seen: Listing, now: Listing, asker: Asker) -> list[bytes] | None:
        names = known_changes(now, seen)
        if names is not None:
            return _forms(now, names)
        size = difference_bytes(now.all(), seen.all())
        permit = self._pipeline.permits.heap.try_acquire(size) if size <= _MOST_BYTES else None
        if permit is None:
            return None
        try:
            work = partial(_changed_forms, seen, now)
            return await self._pipeline.workers.call(asker, work, EACH_COMPARED_BYTE * size)
        finally:
            permit.release()


def _changed_forms(seen: Listing, now: Listing) -> list[bytes] | None:
    """The names that only one of the two has, in the form that patterns match; ``None`` for more than :data:`_MOST`."""
    added, removed = selection_difference(now.all(), seen.all())
    if len(added) + len(removed) > _MOST:
        return None
    return _forms(now, [*added.names.to_pylist(), *removed.names.to_pylist()])


def _forms(listing: Listing, names: Sequence[str]) -> list[bytes]:
    """The texts of full names that patterns match."""
    head = f"{listing.namespace}/"
    locals_ = (name.partition(f"://{head}")[2] for name in names)
    return [(head + partitioned_local_name(local)).encode() for local in locals_]
