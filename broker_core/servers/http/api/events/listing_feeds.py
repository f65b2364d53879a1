"""The feeds of a server: equal questions share one, and the number and the memory of streams are bounded."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Hashable
from functools import partial
from typing import Final
from weakref import WeakKeyDictionary, WeakSet

from broker_core.errors import Cause, ListingFailed, TooManyRequests
from broker_core.listing.listing import Listing, Selection
from broker_core.names import NamespaceName
from broker_core.pipeline import Pipeline
from broker_core.plugin_api.depends_on import AnswerKey, key_of
from broker_core.plugin_api.listing_request import ListingRequest
from broker_core.servers.http.api.admission import ApiAdmission
from broker_core.servers.http.api.change_watch import ChangeWatch
from broker_core.servers.http.api.events.listing_changes import ListingChanges
from broker_core.servers.http.api.events.listing_feed import ListingFeed
from broker_core.servers.http.api.events.recreated_topics import RecreatedTopics
from broker_core.servers.http.api.events.subscriber import Subscriber
from broker_core.servers.http.api.services import ApiServices

__all__ = ["ListingFeeds", "feeds_of"]

#: Seconds that a feed without streams is kept for those that come back.
_LINGER: Final = 30.0
#: Feeds without streams.
_MOST_LEFT: Final = 64

_of_pipelines: WeakKeyDictionary[Pipeline, ListingFeeds] = WeakKeyDictionary()


def feeds_of(services: ApiServices) -> ListingFeeds:
    """The feeds of a broker, for all of its HTTP servers."""
    feeds = _of_pipelines.get(services.pipeline)
    if feeds is None:
        feeds = _of_pipelines[services.pipeline] = ListingFeeds(services)
    return feeds


class ListingFeeds:
    """Feeds by what answers depend on; for one event loop."""

    def __init__(self, services: ApiServices) -> None:
        self._pipeline = services.pipeline
        self._ending: dict[ApiAdmission, asyncio.Task[None]] = {}
        self._change_log = services.change_log
        self._watch = ChangeWatch(services.pipeline.changes, services.change_log)
        self._changes = None if services.change_log is None else ListingChanges(services.pipeline)
        self._feeds: dict[AnswerKey, tuple[ListingFeed, Callable[[], None]]] = {}
        #: Those too that have no place in ``_feeds`` any more, and may be asking still.
        self._made: WeakSet[ListingFeed] = WeakSet()
        self._left: dict[AnswerKey, asyncio.TimerHandle] = {}
        self._streams: Counter[tuple[ApiAdmission, Hashable]] = Counter()
        services.metrics.gauge(
            "http_streams", "Streams of topics over HTTP that are open.", self._streams.total
        )

    def take_place(self, admission: ApiAdmission, client: Hashable) -> None:
        """Count one more stream of a client of one server.

        Where half of the server's places are taken, nobody has more than an eighth of them. Raises
        :exc:`TooManyRequests`.
        """
        places, who = admission.streams, (admission, client)
        limit = places.limit
        has_its_share = 0 < limit <= 2 * places.taken and self._streams[who] >= max(1, limit // 8)
        if has_its_share or not places.take():
            raise TooManyRequests("Too many streams of topics are open", reason="lookups", cause=Cause.QUEUE)
        self._streams[who] += 1
        if admission not in self._ending:
            self._ending[admission] = asyncio.get_running_loop().create_task(self._end_with(admission))

    def give_place(self, admission: ApiAdmission, client: Hashable) -> None:
        """A stream of a client is over."""
        admission.streams.give_back()
        who = (admission, client)
        self._streams[who] -= 1
        if not self._streams[who]:
            del self._streams[who]

    async def join(self, question: ListingRequest, last_id: str | None) -> tuple[ListingFeed, Subscriber]:
        """Follow the answers to a question that its asker may ask; :meth:`leave` ends it.

        Raises :exc:`~broker_core.errors.ListingFailed` where there is no answer.
        """
        subscriber = Subscriber(question.asker)
        key, feed = self._feed(question)
        try:
            await feed.refresh(question.asker)
            recreated = await feed.recreated_since(last_id)
            if feed.is_closed:
                raise ListingFailed("This server is stopping", cause=Cause.UNAVAILABLE)
            feed.join(subscriber, last_id, recreated)
        except BaseException:
            self._left_alone(key, feed)
            raise
        if (timer := self._left.pop(key, None)) is not None:
            timer.cancel()
        return feed, subscriber

    def leave(self, feed: ListingFeed, subscriber: Subscriber) -> None:
        """The stream is over. The feed stays a little for streams that come back."""
        feed.leave(subscriber)
        for key, (each, _) in self._feeds.items() if not feed.subscribers else ():
            if each is feed:
                self._left_alone(key, feed)
                break

    def close(self) -> None:
        """End all streams and feeds."""
        for key in list(self._feeds):
            self._end(key)

    async def stop(self) -> None:
        """End them, before the pipeline that they ask is closed."""
        for task in self._ending.values():
            task.cancel()
        self.close()
        await asyncio.gather(*(feed.stop() for feed in list(self._made)))

    async def _end_with(self, admission: ApiAdmission) -> None:
        """End with the server of these places: all of a broker stop together."""
        await admission.draining.wait()
        self.close()

    def _feed(self, question: ListingRequest) -> tuple[AnswerKey, ListingFeed]:
        namespace = question.namespace
        words = partial(self._words, namespace)
        key = key_of(question, words())
        found = self._feeds.get(key)
        if found is not None and not found[0].is_closed:
            return key, found[0]
        if found is not None:
            self._end(key)
        log = self._change_log
        recreated = None if log is None else RecreatedTopics(log, namespace)
        feed = ListingFeed(self._pipeline, question, words, self._fits, self._changes, recreated)
        self._made.add(feed)
        self._feeds[key] = feed, self._watch.watch(namespace, feed.wake)
        return key, feed

    def _words(self, namespace: NamespaceName) -> frozenset[str]:
        """What the answers to the clients of a namespace depend on."""
        dispatcher = self._pipeline.dispatcher
        words = self._pipeline.lister.depends_on | {"pattern"}
        if dispatcher.lists(namespace) or dispatcher.masks(namespace):
            words |= dispatcher.lister_hook.depends_on(namespace) | dispatcher.mask_hook.depends_on(namespace)
        return words

    def _left_alone(self, key: AnswerKey, feed: ListingFeed) -> None:
        """Forget a feed without streams: at once where it has no answer, else after a while."""
        if feed.subscribers or self._feeds.get(key, (None, None))[0] is not feed:
            return
        if feed.selection is None or feed.is_closed or len(self._left) >= _MOST_LEFT:
            self._end(key)
        elif key not in self._left:
            loop = asyncio.get_running_loop()
            self._left[key] = loop.call_later(_LINGER, self._end_if_alone, key)

    def _end_if_alone(self, key: AnswerKey) -> None:
        self._left.pop(key, None)
        if key in self._feeds and not self._feeds[key][0].subscribers:
            self._end(key)

    def _end(self, key: AnswerKey) -> None:
        feed, unwatch = self._feeds.pop(key)
        unwatch()
        feed.close()
        if (timer := self._left.pop(key, None)) is not None:
            timer.cancel()

    def _fits(self, selection: Selection) -> bool:
        """Whether a listing may be kept besides those of all feeds: together half of what snapshots may take."""
        maximum = self._pipeline.permits.snapshots.maximum
        if not maximum:
            return True
        kept: dict[int, Listing] = {id(selection.listing): selection.listing}
        for feed, _ in self._feeds.values():
            if feed.selection is not None:
                kept[id(feed.selection.listing)] = feed.selection.listing
        return sum(listing.nbytes for listing in kept.values()) <= maximum // 2
