"""The followed questions of one namespace: woken together, by the listing that they are answered from."""

from __future__ import annotations

import asyncio

import structlog

from broker_core.errors import ListingFailed
from broker_core.names import NamespaceName
from broker_core.pipeline import Pipeline
from broker_core.service.following.change_watch import ChangeWatch
from broker_core.service.following.followed_view import FollowedView, ViewKey
from broker_core.service.following.listing_feed import ListingFeed

__all__ = ["FollowedNamespace"]

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
