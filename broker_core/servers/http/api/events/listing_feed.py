"""One question that streams follow: asked once for all of them, and again where its answer may be another one.

Each new answer is compared with the last one at the cost of what changed; the events of the difference are rendered
once. An answer counts only where no plugin failed on the way to it, and no former answer stands in for one: topics go
because they are gone, and not for an error. Where no changed name matches, nothing is asked
(:mod:`~broker_core.servers.http.api.events.listing_changes`).
"""

from __future__ import annotations

import asyncio
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

import structlog

from broker_core.access.access import Access
from broker_core.access.asker import Asker
from broker_core.errors import Cause, ListingFailed, TooManyRequests
from broker_core.listing.listing import Listing, Selection
from broker_core.listing.selection_difference import difference_bytes, selection_difference
from broker_core.memory.permit_budget import Permit
from broker_core.memory.permit_errors import PermitError
from broker_core.pipeline import Answer, NextRuns, Pipeline, Trace
from broker_core.plugin_api.listing_request import ListingRequest
from broker_core.plugins import PluginFailed
from broker_core.servers.http.api.events.event_text import changed_text, recreated_text
from broker_core.servers.http.api.events.listing_changes import ListingChanges
from broker_core.servers.http.api.events.recreated_topics import RecreatedTopics, names_in
from broker_core.servers.http.api.events.subscriber import ChangeEvent, Subscriber

__all__ = ["ListingFeed"]

_log = structlog.get_logger(__name__)

#: Seconds between two answers at the least, and as a multiple of what the last one took.
_GAP: Final = 0.1
_SHARE: Final = 4
#: Seconds after which it is asked again though nobody told of a change: rights, and what tells nobody.
_PERIOD: Final = 30.0
#: The first and the longest pause after a failure.
_PAUSE: Final = 1.0
_LONGEST_PAUSE: Final = 60.0
#: Changes that are kept for streams that come back, and their bytes.
_KEPT: Final = 64
_KEPT_BYTES: Final = 1024 * 1024
#: Bytes of changed names above which streams get all topics anew.
_MOST: Final = 512 * 1024
#: Bytes of names that are compared on the event loop.
_QUICK: Final = 16 * 1024
#: What a kept change takes besides its text.
_EACH: Final = 300
#: Between the topics hash and the rest of an event's id.
_PLACE: Final = "~"
#: Gates that are asked at a time.
_AT_A_TIME: Final = 4


class ListingFeed:
    """The answers to one question, and the streams that follow them; for one event loop.

    ``words`` gives what answers depend on besides the question: streams share a feed that are alike in it. ``fits``
    says whether a listing may be kept besides those of all other feeds. ``changes`` tells of changes that cannot
    concern a question, where the default lister is the catalogue's, and ``recreated`` of names that are other topics.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        question: ListingRequest,
        words: Callable[[], frozenset[str]],
        fits: Callable[[Selection], bool],
        changes: ListingChanges | None = None,
        recreated: RecreatedTopics | None = None,
    ) -> None:
        self._pipeline = pipeline
        self._question = question
        self._words = words
        self._known_words = words()
        self.is_closed = False
        self._fits = fits
        self._listing_changes = changes
        self._recreated = recreated
        #: The newest listing whose answer is known to be the last one.
        self._seen: weakref.ref[Listing] | None = None
        #: Those that follow, in the order in which they came.
        self.subscribers: dict[Subscriber, None] = {}
        #: The last answer, its hash, and what else clients are told of it.
        self.selection: Selection | None = None
        self.topics_hash = ""
        self.told: dict[str, Any] = {}
        #: What the last event of this answer has as its id.
        self.event_id = ""
        self._changes: deque[ChangeEvent] = deque()
        self._kept_bytes = 0
        self._runs: NextRuns[Asker, None] = NextRuns()
        self._woken = asyncio.Event()
        self._next = 0.0
        self._pause = 0.0
        self._failing: tuple[Cause, str] | None = None
        self._task = asyncio.get_running_loop().create_task(self._follow())

    def close(self) -> None:
        """Ask no more, and end all streams."""
        self.is_closed = True
        self._task.cancel()
        for subscriber in self.subscribers:
            subscriber.close()

    async def stop(self) -> None:
        """The same; returns once nothing asks the pipeline any more."""
        self.close()
        await asyncio.wait([self._task])
        await self._runs.stop()

    def wake(self) -> None:
        """The answer may be another one."""
        self._woken.set()

    async def recreated_since(self, last_id: str | None) -> list[str] | None:
        """Names that are other topics now than where an event had this id, perhaps one of a feed that is gone.

        ``None`` where nobody knows. Raises :exc:`ListingFailed`.
        """
        if self._recreated is None or last_id is None:
            return None
        return await self._recreated.missed(last_id.partition(_PLACE)[2])

    def join(self, subscriber: Subscriber, last_id: str | None, recreated: list[str] | None = None) -> None:
        """Follow from here on, after :meth:`refresh`; ``last_id`` is the id of the last event that the client has,
        and ``recreated`` what :meth:`recreated_since` gives of it.
        """
        self.subscribers[subscriber] = None
        if last_id is None:
            subscriber.lag()
            return
        if last_id == self.event_id:
            return
        missed: list[ChangeEvent] = []
        for event in reversed(self._changes):
            missed.append(event)
            if event.before == last_id:
                for each in reversed(missed):
                    subscriber.push(each)
                return
        if recreated is None or self.selection is None or last_id.partition(_PLACE)[0] != self.topics_hash:
            subscriber.lag()
        elif len(names := names_in(self.selection, recreated)):
            subscriber.push(self._recreated_event(last_id, names))

    def leave(self, subscriber: Subscriber) -> None:
        """The stream is over."""
        self.subscribers.pop(subscriber, None)

    async def refresh(self, asker: Asker) -> None:
        """Have the answer of a moment after this call. Raises :exc:`ListingFailed`.

        ``asker`` is one of those who may share it, and who may list.
        """
        try:
            await self._runs.ask(None, self._round, asker)
        except ListingFailed as failure:
            raise failure.copy() from failure.__cause__

    # -- asking again

    async def _follow(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                async with asyncio.timeout(self._pause or _PERIOD):
                    await self._woken.wait()
            except TimeoutError:
                pass
            await asyncio.sleep(max(self._next - loop.time(), 0))
            self._woken.clear()
            if not self.subscribers:
                continue
            started = loop.time()
            try:
                await self._check_rights()
                if self.subscribers and self._recreated is not None:
                    await self._recreated.look()
                if self.subscribers and not await self._is_same():
                    await self.refresh(next(iter(self.subscribers)).asker)
                if self._recreated is not None and self.selection is not None:
                    self._tell_recreated(self._recreated.of(self.selection))
                self._pause, self._failing = 0.0, None
            except ListingFailed as failure:
                self._failed(failure)
            except Exception:  # noqa: BLE001 - whatever it is, the streams stay as they are
                _log.exception("a stream of topics failed", namespace=str(self._question.namespace))
                self._failed(ListingFailed("internal error; the log says more", cause=Cause.INTERNAL))
            now = loop.time()
            self._next = now + max(_GAP, _SHARE * (now - started), self._pause)

    async def _is_same(self) -> bool:
        """Whether nothing that has changed since the last answer concerns this question."""
        changes, selection = self._listing_changes, self.selection
        if changes is None or selection is None or not changes.applies(self._question):
            return False
        seen = None if self._seen is None else self._seen()
        now = await changes.same_since(seen or selection.listing, self._question)
        # A stream that came meanwhile may have had the question asked anew.
        if now is None or self.selection is not selection:
            return False
        self._seen = weakref.ref(now)
        return True

    def _tell_recreated(self, names: Selection | None) -> None:
        """Tell all streams of these names that they are other topics now; ``None``: it may be any of them."""
        if names is not None and not len(names):
            return
        assert self._recreated is not None
        before, self.event_id = self.event_id, self._id_of(self.topics_hash)
        if names is None:
            self._keep(None)
            return
        self._keep(self._recreated_event(before, names))

    def _recreated_event(self, before: str, names: Selection) -> ChangeEvent | None:
        """The event of these names; ``None`` where there is no memory for it."""
        return self._held_event(before, self.event_id, recreated_text(names, self.event_id))

    def _held_event(self, before: str, after: str, text: bytes) -> ChangeEvent | None:
        permits = self._pipeline.permits
        kept = permits.snapshots.try_acquire(len(text) + _EACH)
        if kept is None:
            return None
        event = ChangeEvent(before, after, b"%x\r\n%s\r\n" % (len(text), text))
        permits.leases.hold(event, kept)
        return event

    def _id_of(self, topics_hash: str) -> str:
        """A hash says nothing of names that are other topics: up to where these were told is beside it."""
        return topics_hash if self._recreated is None else topics_hash + _PLACE + self._recreated.told

    def _failed(self, failure: ListingFailed) -> None:
        self._pause = min(2 * self._pause or _PAUSE, _LONGEST_PAUSE)
        if self._failing != (failure.cause, failure.message):
            self._failing = (failure.cause, failure.message)
            for subscriber in self.subscribers:
                subscriber.fail(failure)

    async def _round(self, askers: Sequence[Asker]) -> None:
        """Ask once."""
        pipeline = self._pipeline
        asker, deadline = askers[0], asyncio.get_running_loop().time() + pipeline.options.time_budget
        question = replace(
            self._question,
            asker=asker,
            deadline=deadline,
            topics_hash=None if self.selection is None else self.topics_hash,
        )
        # While nobody follows, nobody looks: who comes back is told at once what became other topics meanwhile.
        looks = None if self.subscribers else self._recreated
        if looks is not None:
            await looks.look()
        trace = Trace()
        answer = pipeline.answer_now(question) or await pipeline.answer(question, trace)
        try:
            if self._words() != self._known_words:
                # A plugin has read what it does not declare: this may be an answer for one of them alone.
                self.close()
                raise ListingFailed("what answers depend on has changed: ask again", cause=Cause.UNAVAILABLE)
            if self.selection is not None:
                _check_trace(trace)
            if answer.selection is not None:
                await self._take(asker, answer, answer.selection)
            if looks is not None and self.selection is not None:
                self._tell_recreated(looks.of(self.selection))
        finally:
            answer.release()

    async def _take(self, asker: Asker, answer: Answer, selection: Selection) -> None:
        """Make this the last answer, and tell all streams of the difference."""
        self._hold(answer, selection)
        event: ChangeEvent | None = None
        if self.selection is not None:
            event = await self._event(asker, selection, self.selection, answer.topics_hash)
            await self._check_rights()
        self.selection, self.topics_hash, self._seen = selection, answer.topics_hash, None
        self.event_id = self._id_of(answer.topics_hash)
        self.told = {"filtered": answer.filtered}
        self._keep(event)

    def _keep(self, event: ChangeEvent | None) -> None:
        """Give a change to all streams, and keep it for those that come back; ``None``: they get all topics anew."""
        if event is None:
            self._changes.clear()
            self._kept_bytes = 0
        else:
            self._changes.append(event)
            self._kept_bytes += len(event.frame)
            while len(self._changes) > _KEPT or self._kept_bytes > _KEPT_BYTES:
                self._kept_bytes -= len(self._changes.popleft().frame)
        for subscriber in self.subscribers:
            subscriber.push(event)

    async def _event(
        self, asker: Asker, selection: Selection, before: Selection, topics_hash: str
    ) -> ChangeEvent | None:
        """The events of the difference; ``None`` where they are so many, or memory so short, that all is sent anew."""
        permits, size = self._pipeline.permits, difference_bytes(selection, before)
        try:
            permit = await permits.heap.acquire(size, key=asker.connection)
        except PermitError:
            return None
        try:
            event_id = self._id_of(topics_hash)
            work = partial(_difference, selection, before, event_id)
            text = await self._pipeline.workers.call(asker, work, quick=size <= _QUICK)
        finally:
            permit.release()
        return None if text is None else self._held_event(self.event_id, event_id, text)

    # -- memory

    def _hold(self, answer: Answer, selection: Selection) -> None:
        """Let the last answer have permits of what is kept, and not of listings under way."""
        permits = self._pipeline.permits
        held = permits.leases.held(selection.listing)
        size = 0 if answer.permit is None else answer.permit.count
        unkept = isinstance(held, Permit) and held.budget is permits.unkept
        is_new = self.selection is None
        kept = (
            None
            if unkept or (is_new and not self._fits(selection))
            else permits.snapshots.try_acquire(size + _EACH)
        )
        if kept is None:
            raise TooManyRequests(
                "Streams of topics need more memory than there is room for (limits.snapshots)",
                reason="snapshot_memory",
            )
        permits.leases.hold(selection, kept)

    # -- rights

    async def _check_rights(self) -> None:
        """End the streams of those who may not list the namespace any more."""
        pipeline, namespace = self._pipeline, self._question.namespace
        if not pipeline.has_guards:
            return
        asked: dict[tuple[object, ...], list[Subscriber]] = {}
        for subscriber in list(self.subscribers):
            asker = subscriber.asker
            if pipeline.passes_now(asker, namespace):
                continue
            key = (asker.role, asker.original_principal, asker.host, asker.client_version, asker.transport)
            asked.setdefault(key, []).append(subscriber)
        places = asyncio.Semaphore(_AT_A_TIME)

        async def check(alike: list[Subscriber]) -> None:
            async with places:
                failure = await self._refusal(alike[0].asker)
            for each in alike:
                if failure is None:
                    each.resume()
                elif isinstance(failure, PluginFailed):  # a gate that says nothing: nor do we, for now
                    each.suspend(failure)
                else:
                    each.end(failure)
                    self.leave(each)

        await asyncio.gather(*(check(alike) for alike in asked.values()))

    async def _refusal(self, asker: Asker) -> ListingFailed | None:
        try:
            await self._pipeline.authorize(Access("list", self._question.namespace, None, asker))
        except ListingFailed as failure:
            return failure
        return None


def _check_trace(trace: Trace) -> None:
    """Raise the failure of a plugin whose answer something else stands in for."""
    for step in trace.chain:
        if step.answer == "error" or step.stale is not None:
            raise ListingFailed(
                f"plugin {step.plugin!r} failed: the topics stay as they were",
                cause=Cause.PLUGIN,
                plugin=step.plugin,
            )


def _difference(selection: Selection, before: Selection, topics_hash: str) -> bytes | None:
    added, removed = selection_difference(selection, before)
    if added.fields_size + removed.fields_size > _MOST:
        return None
    return changed_text(added, removed, topics_hash)
