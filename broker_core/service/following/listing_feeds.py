"""The feeds of a broker: equal questions share one, and their memory is bounded."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, replace
from typing import Final
from weakref import WeakSet

from broker_core.catalog import CatalogLogReader
from broker_core.concurrency import loop_turn
from broker_core.errors import Cause, ListingFailed
from broker_core.listing import Listing, Selection
from broker_core.memory import CacheState
from broker_core.names import Mode, NamespaceName
from broker_core.pipeline import Pipeline
from broker_core.plugin_api import AnswerKey, ListingRequest, key_of
from broker_core.service.following.change_watch import ChangeWatch
from broker_core.service.following.followed_namespace import FollowedNamespace
from broker_core.service.following.follower import Follower
from broker_core.service.following.listing_feed import PLACE, ListingFeed
from broker_core.service.following.recreated_topics import RecreatedTopics

__all__ = ["FollowedQuestion", "ListingFeeds"]

#: Seconds that a feed without followers is kept for clients that come back.
_LINGER: Final = 30.0
#: Feeds without followers.
_MOST_LEFT: Final = 64
#: Followers that are counted between two looks at the time of the event loop's turn.
_AT_ONCE: Final = 500


@dataclass(frozen=True, slots=True)
class FollowedQuestion:
    """A question that clients follow. ``properties`` are the selecting ones; ``topics`` is ``None`` before an answer.

    ``followers`` are counted by transport; ``outdated`` counts those that may lack some changes. ``period``
    is the longest time in seconds until a change is sent, ``None`` if it is sent as it comes. ``problem`` is why there
    is no answer now, so that the topics stay as they were.
    """

    namespace: str
    mode: Mode
    topics_pattern: str | None
    properties: tuple[tuple[str, str], ...]
    followers: Counter[str]
    outdated: int
    topics: int | None
    period: float | None
    problem: str | None

    @property
    def watchers(self) -> int:
        """The number of topic list watchers of Pulsar clients."""
        return self.followers["pulsar"]

    @property
    def streams(self) -> int:
        """The number of event streams over HTTP."""
        return self.followers.total() - self.watchers


class ListingFeeds:
    """Feeds by what answers depend on; for one event loop.

    ``change_log`` is the catalogue's, ``None`` before a cluster. Questions whose changes no signal reports are asked
    again after ``interval`` seconds.
    """

    def __init__(
        self, pipeline: Pipeline, change_log: CatalogLogReader | None = None, *, interval: float = 30.0
    ) -> None:
        self._pipeline = pipeline
        self._change_log = change_log
        self._interval = interval
        self._watch = ChangeWatch(pipeline.changes, change_log)
        self._namespaces: dict[NamespaceName, FollowedNamespace] = {}
        self._feeds: dict[AnswerKey, ListingFeed] = {}
        #: All feeds, also those that have left ``_feeds`` and may still be asking.
        self._made: WeakSet[ListingFeed] = WeakSet()
        self._left: dict[AnswerKey, asyncio.TimerHandle] = {}
        # One object for all feeds.
        self._words_of, self._room_for = self._words, self._fits
        self._last_words: frozenset[str] = frozenset()
        pipeline.on_rules.append(self._wake_all)
        pipeline.permits.caches.show("followed answers", self._state)

    @property
    def failing(self) -> int:
        """The number of followed questions without an answer now."""
        return sum(feed.problem is not None and bool(feed.followers) for feed in self._feeds.values())

    def _wake_all(self) -> None:
        """Check, after a change of rules, which followers may go on, and what they see."""
        for feed in self._feeds.values():
            feed.wake()

    async def join(
        self, question: ListingRequest, follower: Follower, last_id: str | None = None
    ) -> ListingFeed:
        """Follow the answers to a question that its asker may ask; :meth:`leave` ends it.

        ``last_id`` is the id of the last event that the client has; without one, the follower has the current answer.
        The answer is no older than the client's former one, at this server or another, by its hash. Raises
        :exc:`~broker_core.errors.ListingFailed` if there is no answer.
        """
        feed = self._feed(question)
        try:
            failure = await self._catch_up(question, last_id)
            await feed.refresh(question.asker)
            if failure is not None and feed.is_of_default:
                raise failure
            recreated = await feed.recreated_since(last_id)
            if feed.is_closed:
                raise ListingFailed("This server is stopping", cause=Cause.UNAVAILABLE)
            feed.join(follower, last_id, recreated)
        except BaseException:
            self._left_alone(feed)
            raise
        if (timer := self._left.pop(feed.key, None)) is not None:
            timer.cancel()
        return feed

    async def _catch_up(self, question: ListingRequest, last_id: str | None) -> ListingFailed | None:
        """The reason why an answer of the default lister may be older than the client's former one; a plugin may still
        answer.
        """
        had = question.topics_hash if last_id is None else last_id.partition(PLACE)[0]
        try:
            await self._pipeline.lister.catch_up(replace(question, topics_hash=had))
        except ListingFailed as failure:
            if not self._pipeline.dispatcher.lists(question.namespace):
                raise
            return failure
        return None

    def leave(self, feed: ListingFeed, follower: Follower) -> None:
        """Note that the follower is gone. The feed stays a little for followers that come back."""
        feed.leave(follower)
        self._left_alone(feed)

    def ask_again(self) -> None:
        """Ask all questions again: rights may have changed, or the topics that properties select."""
        for followed in self._namespaces.values():
            followed.ask_again()

    async def followed(self) -> list[FollowedQuestion]:
        """The questions that clients follow now, in the order in which they began. The loop serves others meanwhile."""
        found: list[FollowedQuestion] = []
        turn, keys = loop_turn(), self._pipeline.options.selecting_keys
        for feed in list(self._feeds.values()):
            followers, outdated, period = Counter[str](), 0, None
            for number, follower in enumerate(list(feed.followers)):
                if number % _AT_ONCE == 0:
                    await turn.time()
                    period = feed.period(follower.asker)
                followers[follower.asker.transport] += 1
                outdated += feed.problem is not None or not follower.is_up_to_date
            question, selection = feed.question, feed.selection
            properties = sorted(pair for pair in question.properties.items() if pair[0] in keys)
            if followers:
                found.append(
                    FollowedQuestion(
                        str(question.namespace),
                        question.mode,
                        question.topics_pattern,
                        tuple(properties),
                        followers,
                        outdated,
                        None if selection is None else len(selection),
                        period,
                        feed.problem,
                    )
                )
        return found

    def close(self) -> None:
        """End all followers and feeds."""
        for key in list(self._feeds):
            self._end(key)

    async def stop(self) -> None:
        """End all feeds, before the pipeline that they ask is closed."""
        self.close()
        await asyncio.gather(*(feed.stop() for feed in list(self._made)))

    def _feed(self, question: ListingRequest) -> ListingFeed:
        namespace = question.namespace
        key = key_of(question, self._words(namespace))
        found = self._feeds.get(key)
        if found is not None and not found.is_closed:
            return found
        if found is not None:
            self._end(key)
        log = self._change_log
        recreated = None if log is None else RecreatedTopics(log, namespace)
        feed = ListingFeed(self._pipeline, question, self._words_of, self._room_for, recreated)
        self._made.add(feed)
        self._feeds[feed.key] = feed
        followed = self._namespaces.get(namespace)
        if followed is None:
            followed = FollowedNamespace(self._pipeline, namespace, self._watch, self._interval)
            self._namespaces[namespace] = followed
        followed.add(feed)
        return feed

    def _words(self, namespace: NamespaceName) -> frozenset[str]:
        """The words of what the answers to the clients of a namespace depend on."""
        words = (
            self._pipeline.lister.depends_on | {"pattern"} | self._pipeline.dispatcher.depends_on(namespace)
        )
        if self._pipeline.authorization.has_topics:
            words |= {"principal"}
        if words != self._last_words:
            self._last_words = words
        return self._last_words

    def _left_alone(self, feed: ListingFeed) -> None:
        """Forget a feed without followers: at once if it has no answer, else after a while."""
        key = feed.key
        if feed.followers or self._feeds.get(key) is not feed:
            return
        if feed.selection is None or feed.is_closed or len(self._left) >= _MOST_LEFT:
            self._end(key)
        elif key not in self._left:
            loop = asyncio.get_running_loop()
            self._left[key] = loop.call_later(_LINGER, self._end_if_alone, key)

    def _end_if_alone(self, key: AnswerKey) -> None:
        self._left.pop(key, None)
        if key in self._feeds and not self._feeds[key].followers:
            self._end(key)

    def _end(self, key: AnswerKey) -> None:
        feed = self._feeds.pop(key)
        namespace = feed.question.namespace
        followed = self._namespaces[namespace]
        followed.remove(feed)
        if followed.is_empty:
            del self._namespaces[namespace]
            followed.close()
        feed.close()
        if (timer := self._left.pop(key, None)) is not None:
            timer.cancel()

    def _listings(self) -> dict[int, Listing]:
        """The listings that the answers of feeds are made of."""
        listings = (feed.selection.listing for feed in self._feeds.values() if feed.selection is not None)
        return {id(listing): listing for listing in listings}

    def _state(self) -> CacheState:
        kept = self._listings().values()
        limit = self._pipeline.permits.snapshots.maximum // 2
        return CacheState(len(self._feeds), lambda: sum(listing.nbytes for listing in kept), limit)

    def _fits(self, selection: Selection) -> bool:
        """Whether a listing may be kept besides those of all feeds: together they may have half of the snapshots'
        permits.
        """
        maximum = self._pipeline.permits.snapshots.maximum
        if not maximum:
            return True
        kept = self._listings() | {id(selection.listing): selection.listing}
        return sum(listing.nbytes for listing in kept.values()) <= maximum // 2
