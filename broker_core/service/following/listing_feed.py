"""One followed question: asked once for all followers, and again when its answer may have changed.

Each new answer is compared with the last one at the cost of what changed; the difference is rendered once for each kind
of follower. An answer counts only if no plugin failed on the way to it, and no former answer stands in: topics vanish
because they are deleted, and not for an error.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, Protocol

import structlog

from broker_core.access import Asker
from broker_core.concurrency import EACH_COMPARED_BYTE, loop_turn
from broker_core.errors import Cause, ListingFailed, TooManyRequests
from broker_core.listing import Listing, Selection, difference_bytes
from broker_core.memory import PermitError, permits_refused
from broker_core.names import NamespaceName
from broker_core.pipeline import Answer, Ended, NextRuns, Pipeline, ReusableAnswer, Trace
from broker_core.plugin_api import ListingRequest, key_of
from broker_core.service.following.follower import (
    MOST_JOINED,
    ChangeEvent,
    ChangeRenderer,
    Follower,
    JoinedUpdates,
    Shortage,
    call_in_turns,
    joined_updates,
    rendered_change,
)
from broker_core.service.following.follower_rights import end_refused
from broker_core.service.following.recreated_topics import RecreatedTopics, names_in

__all__ = ["PLACE", "ListingFeed"]

_log = structlog.get_logger(__name__)

#: Seconds between two answers at the least, and as a multiple of what the last one took.
_GAP: Final = 0.1
_SHARE: Final = 4
#: The first and the longest pause after a failure.
_PAUSE: Final = 1.0
_LONGEST_PAUSE: Final = 60.0
#: Changes that are kept for followers that come back, and their bytes.
_KEPT: Final = 64
_KEPT_BYTES: Final = 1024 * 1024
#: Bytes of a kept change besides its text.
_EACH: Final = 300
#: Joined updates that are kept, from different older answers to the current one.
_KEPT_UPDATES: Final = 4
#: Between the topics hash and the rest of an event's id.
PLACE: Final = "~"
#: Followers that are given a change in one turn of the event loop.
_AT_ONCE: Final = 50
#: Bytes of an answer that is copied out of a much larger listing, so as not to keep that in memory.
_COPIED: Final = 64 * 1024
_MUCH_LARGER: Final = 4


class Waker(Protocol):
    """The part that wakes a feed when its answer may have changed."""

    def has_current(self, asker: Asker) -> bool:
        """Whether a change that a client has not got yet would have woken the feed."""

    def report(self, feed: ListingFeed, failure: ListingFailed | None, /) -> None:
        """Note that a feed has no answer, or has one again."""

    def period_of(self, question: ListingRequest, asker: Asker) -> float | None:
        """Seconds after which followers of a question have a change at the latest; ``None``: as it comes."""


class ListingFeed:
    """The answers to one question, and their followers; for one event loop.

    ``words`` gives what answers in a namespace depend on besides the question: followers with the same values share a
    feed. ``fits`` says whether a listing may be kept besides those of all other feeds. ``recreated`` finds names that
    are other topics now.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        question: ListingRequest,
        words: Callable[[NamespaceName], frozenset[str]],
        fits: Callable[[Selection], bool],
        recreated: RecreatedTopics | None = None,
    ) -> None:
        self._pipeline = pipeline
        self.question = question
        self._words = words
        self._known_words = words(question.namespace)
        #: The key by which equal questions find this feed.
        self.key = key_of(question, self._known_words)
        self.is_closed = False
        self._fits = fits
        self._recreated = recreated
        self._renderers: tuple[ChangeRenderer, ...] = ()
        #: The followers, in the order in which they came.
        self.followers: dict[Follower, None] = {}
        #: The last answer, its hash, and whether the pattern was applied.
        self.selection: Selection | None = None
        self.topics_hash = ""
        self.filtered = False
        #: Whether the default lister had a part in it.
        self.is_of_default = True
        #: The id of the last event of this answer.
        self.event_id = ""
        self._reusable: ReusableAnswer | None = None
        #: The last joined updates that lead to the current answer, for followers with different older answers.
        self._joined: list[JoinedUpdates] = []
        self._joining: asyncio.Lock | None = None  # made with the first follower that was slow
        self._changes: list[ChangeEvent] = []  # few: an empty deque takes 700 bytes
        self._kept_bytes = 0
        self._runs: NextRuns[Asker, None] = NextRuns()
        self._is_woken = False
        self._moves = False
        self._task: asyncio.Task[None] | None = None
        self._retry: asyncio.TimerHandle | None = None
        self._next = 0.0
        self._pause = 0.0
        self._failing: tuple[Cause, str] | None = None
        self._shortage = Shortage()
        #: The part that wakes this feed.
        self.waker: Waker | None = None

    def close(self) -> None:
        """Ask no more, and end all followers."""
        self.is_closed = True
        if self._task is not None:
            self._task.cancel()
        if self._retry is not None:
            self._retry.cancel()
        for follower in list(self.followers):
            follower.close()

    async def stop(self) -> None:
        """Ask no more, end all followers, and return once nothing asks the pipeline any more."""
        self.close()
        if self._task is not None:
            await asyncio.wait([self._task])
        await self._runs.stop()

    def wake(self) -> None:
        """Note that the answer may have changed."""
        if self.is_closed:
            return
        self._is_woken = True
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._follow())

    def move_to(self, listing: Listing) -> None:
        """Take the answer of this newer listing, if the old answer keeps an older one in memory."""
        selection = self.selection
        if selection is not None and selection.listing is not listing and not self._is_copied(selection):
            self._moves = True
            self.wake()

    def repeat_now(self, asker: Asker) -> Ended | None:
        """Count the last answer as given once more, if it is known at once to be current; else return ``None``.

        Followers are notified of changes soon after them, so that a change of the last moment does not count.
        """
        reusable, waker = self._reusable, self.waker
        if reusable is None:
            return None
        known = waker is not None and self._is_settled and waker.has_current(asker)
        return self._pipeline.answer_again(reusable, asker, known=known)

    def period(self, asker: Asker) -> float | None:
        """Seconds between two looks for changes, for a client; ``None``: they are reported as they come."""
        return None if self.waker is None else self.waker.period_of(self.question, asker)

    @property
    def _is_settled(self) -> bool:
        """Whether the last answer came without an error, and no newer one is being looked for."""
        return not self._is_woken and self._failing is None and (self._task is None or self._task.done())

    @property
    def problem(self) -> str | None:
        """The reason why there is no answer now, and the followers stay with the last one; ``None`` if there is one."""
        return None if self._failing is None else self._failing[1]

    async def recreated_since(self, last_id: str | None) -> list[str] | None:
        """Names that are other topics now than at the event with this id, which may be of a feed that is gone.

        ``None`` if unknown. Raises :exc:`ListingFailed`.
        """
        if self._recreated is None or last_id is None:
            return None
        return await self._recreated.missed(last_id.partition(PLACE)[2])

    def join(self, follower: Follower, last_id: str | None, recreated: list[str] | None = None) -> None:
        """Follow from here on, after :meth:`refresh`; ``last_id`` is the id of the last event that the client has, and
        ``recreated`` the result of :meth:`recreated_since` for it. Without an id the follower has the current answer.
        """
        self.followers[follower] = None
        if follower.renderer not in self._renderers:
            self._renderers += (follower.renderer,)
        if last_id is None or last_id == self.event_id:
            return
        missed: list[ChangeEvent] = []
        for event in reversed(self._changes):
            missed.append(event)
            if event.before == last_id:
                for each in reversed(missed):
                    follower.changed(each, None)
                return
        if recreated is None or self.selection is None or last_id.partition(PLACE)[0] != self.topics_hash:
            follower.changed(None, None)
        elif len(names := names_in(self.selection, recreated)):
            follower.changed(self._recreated_event(last_id, names), None)

    def leave(self, follower: Follower) -> None:
        """Note that the follower is gone."""
        self.followers.pop(follower, None)

    async def refresh(self, asker: Asker) -> None:
        """Get the answer of a moment after this call. Raises :exc:`ListingFailed`.

        ``asker`` may share the answer, and may list.
        """
        try:
            await self._runs.ask(None, self._round, asker)
        except ListingFailed as failure:
            raise failure.copy() from failure.__cause__

    async def joined(self, base: Selection, follower: Follower) -> JoinedUpdates:
        """The updates of a follower that has the topics of ``base``, the first ones if there are many.

        They are made once for all followers with the same topics, one after the other. Raises :exc:`ListingFailed`.
        """
        if (known := self._known_updates(base)) is not None:
            return known
        self._joining = self._joining or asyncio.Lock()
        async with self._joining:
            return self._known_updates(base) or await self._made_updates(base, follower)

    def _known_updates(self, base: Selection) -> JoinedUpdates | None:
        left = (each.after(base) for each in self._joined if each.target is self.selection)
        return next((each for each in left if each is not None), None)

    async def _made_updates(self, base: Selection, follower: Follower) -> JoinedUpdates:
        target = self.selection
        assert target is not None
        permits, asker = self._pipeline.permits, follower.asker
        size = difference_bytes(target, base) + MOST_JOINED
        try:
            permit = await permits.heap.acquire(size, key=asker.connection)
        except PermitError as error:
            raise permits_refused("heap", error) from None
        try:
            work = partial(joined_updates, base, target, follower.renderer)
            made = await self._pipeline.workers.call(asker, work, EACH_COMPARED_BYTE * (size - MOST_JOINED))
        finally:
            permit.release()
        kept = permits.beside_snapshots(2 * made.size + _EACH)
        if kept is None:
            raise permits_refused("snapshot_memory")
        permits.leases.hold(made, kept)
        if self.selection is target:
            self._joined = [made, *self._joined[: _KEPT_UPDATES - 1]]
        return made

    # -- asking again

    async def _follow(self) -> None:
        loop = asyncio.get_running_loop()
        while self._is_woken:
            if (pause := self._next - loop.time()) > 0:
                await asyncio.sleep(pause)
            self._is_woken = False
            if not self.followers:
                return
            started = loop.time()
            try:
                await end_refused(self._pipeline, self.question.namespace, self.followers, self.leave)
                if self.followers and self._recreated is not None:
                    await self._recreated.look()
                if self.followers:
                    await self.refresh(next(iter(self.followers)).asker)
                if self._recreated is not None and self.selection is not None:
                    self._report_recreated(self._recreated.of(self.selection))
                self._succeeded()
            except ListingFailed as failure:
                self._failed(failure)
            except Exception:  # noqa: BLE001 - whatever it is, the followers stay as they are
                _log.exception("a followed question failed", namespace=str(self.question.namespace))
                self._failed(ListingFailed("internal error; the log says more", cause=Cause.INTERNAL))
            now = loop.time()
            self._next = now + max(_GAP, _SHARE * (now - started), self._pause)

    def _report_recreated(self, names: Selection | None) -> None:
        """Notify all followers that these names are other topics now; ``None``: any of their names may be."""
        if names is not None and not len(names):
            return
        assert self._recreated is not None
        before, self.event_id = self.event_id, self._id_of(self.topics_hash)
        event = None if names is None else self._recreated_event(before, names)
        self._keep(event)
        for follower in list(self.followers):
            follower.changed(event, self.selection)

    def _recreated_event(self, before: str, names: Selection) -> ChangeEvent | None:
        """The event of these names; ``None`` if there is no memory for it."""
        rendered = {each: each.recreated(names, self.event_id) for each in self._renderers}
        return self._held_event(ChangeEvent(before, self.event_id, rendered))

    def _held_event(self, event: ChangeEvent) -> ChangeEvent | None:
        permits = self._pipeline.permits
        kept = permits.beside_snapshots(event.size + _EACH)
        if kept is None:
            return None
        permits.leases.hold(event, kept)
        return event

    def _id_of(self, topics_hash: str) -> str:
        """The event id of an answer: its hash, and beside it the version up to which recreated names were sent."""
        return topics_hash if self._recreated is None else topics_hash + PLACE + self._recreated.reported

    def _succeeded(self) -> None:
        if self._retry is not None:
            self._retry.cancel()
        if self._failing is not None and self.waker is not None:
            self.waker.report(self, None)
        self._pause, self._failing, self._retry = 0.0, None, None
        self._shortage.is_over()

    def _failed(self, failure: ListingFailed) -> None:
        if isinstance(failure, TooManyRequests) and failure.reason == "snapshot_memory":
            # What is kept for clients that come back may be in the way.
            self._keep(None)
            self._joined = []
            if self._shortage.goes_on():
                self.close()
                return
        else:
            self._shortage.is_over()
        self._pause = min(2 * self._pause or _PAUSE, _LONGEST_PAUSE)
        if self._retry is not None:
            self._retry.cancel()
        self._retry = asyncio.get_running_loop().call_later(self._pause, self.wake)
        if self._failing != (failure.cause, failure.message):
            self._failing = (failure.cause, failure.message)
            if self.waker is not None:
                self.waker.report(self, failure)
            for follower in list(self.followers):
                follower.fail(failure)

    async def _round(self, askers: Sequence[Asker]) -> None:
        """Ask once."""
        # With many questions of one change: without time at once all of them would take the long way, which needs a
        # snapshot of the newest version, also if later changes do not concern their patterns.
        await loop_turn().time()
        pipeline = self._pipeline
        asker, deadline = askers[0], asyncio.get_running_loop().time() + pipeline.options.time_budget
        moves, self._moves = self._moves or self.selection is None, False
        question = replace(
            self.question,
            asker=asker,
            deadline=deadline,
            topics_hash=None if moves else self.topics_hash,
        )
        # Without followers nobody looks: a client that comes back gets at once the names that became other topics
        # meanwhile.
        looks = None if self.followers else self._recreated
        if looks is not None:
            await looks.look()
        trace = Trace()
        answer = pipeline.answer_now(question) or await pipeline.answer(question, trace)
        try:
            if self._words(self.question.namespace) != self._known_words:
                # A plugin has read a field that it does not declare: the answer may be for one asker alone.
                self.close()
                raise ListingFailed("what answers depend on has changed: ask again", cause=Cause.UNAVAILABLE)
            self.is_of_default = answer.lister == pipeline.lister.name or bool(trace.rest)
            if self.selection is not None:
                _check_trace(trace)
            has_room = answer.selection is None or await self._take(asker, answer, answer.selection)
            if has_room:
                self._reusable = ReusableAnswer.of(question, answer)
            if self._reusable is not None:
                self._reusable.changed = False  # a client that asks again has the topics
            if has_room and looks is not None and self.selection is not None:
                self._report_recreated(looks.of(self.selection))
        finally:
            answer.release()
            del answer  # an error that is raised keeps the variables, and so would the listing's memory
        if not has_room:
            raise TooManyRequests(
                "Followed questions need more memory than there is room for (limits.snapshots)",
                reason="snapshot_memory",
            )

    async def _take(self, asker: Asker, answer: Answer, selection: Selection) -> bool:
        """Make this the last answer, and send all followers the difference; false if there is no room for it."""
        if selection.fields_size <= _COPIED and len(selection.listing) > _MUCH_LARGER * len(selection):
            selection = selection.on_its_own()
        if not self._hold(answer, selection):
            return False
        before = self.selection
        if before is not None and answer.topics_hash == self.topics_hash:
            self.selection, self._joined = selection, []
            return True
        event: ChangeEvent | None = None
        if before is not None:
            event = await self._event(asker, selection, before, answer.topics_hash)
            await end_refused(self._pipeline, self.question.namespace, self.followers, self.leave)
        self.selection, self.topics_hash, self._joined = selection, answer.topics_hash, []
        self.event_id = self._id_of(answer.topics_hash)
        self.filtered = answer.filtered
        self._keep(event)
        self._report(event, before)
        return True

    def _report(self, event: ChangeEvent | None, before: Selection | None) -> None:
        """Give a change to all followers; if they are many, to some at a time, for a PING between them."""
        later: list[Callable[[], None]] = []
        for number, follower in enumerate(list(self.followers)):
            if before is None or number < _AT_ONCE or not follower.waits(before):
                follower.changed(event, before)
            elif self.selection is not None:
                later.append(partial(follower.changed_later, event, before, self.selection))
        if later:
            call_in_turns(later, _AT_ONCE)

    def _keep(self, event: ChangeEvent | None) -> None:
        """Keep a change for clients that come back; ``None``: it is not kept, nor any before it."""
        if event is None:
            self._changes.clear()
            self._kept_bytes = 0
        else:
            self._changes.append(event)
            self._kept_bytes += event.size
            while len(self._changes) > _KEPT or self._kept_bytes > _KEPT_BYTES:
                self._kept_bytes -= self._changes.pop(0).size

    async def _event(
        self, asker: Asker, selection: Selection, before: Selection, topics_hash: str
    ) -> ChangeEvent | None:
        """The event of the difference; ``None`` if it is too large, or memory too short."""
        permits, size = self._pipeline.permits, difference_bytes(selection, before)
        try:
            permit = await permits.heap.acquire(size, key=asker.connection)
        except PermitError:
            return None
        try:
            event_id = self._id_of(topics_hash)
            work = partial(rendered_change, selection, before, topics_hash, event_id, self._renderers)
            rendered = await self._pipeline.workers.call(asker, work, EACH_COMPARED_BYTE * size)
        finally:
            permit.release()
        return self._held_event(ChangeEvent(self.event_id, event_id, rendered)) if rendered else None

    # -- memory

    def _is_copied(self, selection: Selection) -> bool:
        return selection.is_whole and self.question.pattern is not None and selection.fields_size <= _COPIED

    def _hold(self, answer: Answer, selection: Selection) -> bool:
        """Move the last answer from permits of listings under way to permits of what is kept; false without room."""
        permits = self._pipeline.permits
        size = selection.fields_size if answer.permit is None else answer.permit.count
        if answer.permit is None and answer.selection is selection:
            size = 0  # a part of a listing that has permits
        is_new = self.selection is None
        kept = (
            None
            if permits.is_unkept(selection.listing) or (is_new and not self._fits(selection))
            else permits.beside_snapshots(size + _EACH)
        )
        if kept is not None:
            permits.leases.hold(selection, kept)
        return kept is not None


def _check_trace(trace: Trace) -> None:
    """Raise the failure of a plugin for whose answer another one stands in."""
    for step in trace.chain:
        if step.answer == "error" or step.stale is not None:
            raise ListingFailed(
                f"plugin {step.plugin!r} failed: the topics stay as they were",
                cause=Cause.PLUGIN,
                plugin=step.plugin,
            )
