"""The one path of a listing: permits, plugins, checks, filter, masks, hash (DESIGN, "The path of a listing").

Two ways lead along it. :meth:`Pipeline.answer_now` answers at once where that takes well under a millisecond and
nobody has to be waited for: no plugin is concerned, the snapshot is in memory and current, the pattern is a range, a
short scan or one that was just asked. Everything else goes :meth:`Pipeline.answer`, which waits for permits, asks the
plugins and gives long work to threads, whose kernels run without the interpreter's lock.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import pyarrow as pa
import structlog

from broker_core.errors import BrokerCoreError, InvalidListing, InvalidPattern, ListingFailed, TooManyRequests
from broker_core.estimates import Estimates
from broker_core.hookspecs import ListingOutcome
from broker_core.listing_request import ListingRequest
from broker_core.listing_result import AnswerKind, DefaultLister, TopicListingResult
from broker_core.loop_turn import loop_turn
from broker_core.metrics import Metrics
from broker_core.name_columns import as_column
from broker_core.patterns import TopicsPattern, compile_now, compile_pattern
from broker_core.permits import Permits
from broker_core.pipeline.answer import Answer, Trace
from broker_core.pipeline.answer_key import answer_key
from broker_core.pipeline.answer_store import AnswerStore
from broker_core.pipeline.checked import (
    VerifyFiltered,
    built,
    claim_sample,
    given_bytes,
    known_selection,
    own_hash,
)
from broker_core.pipeline.held_permit import HeldPermit
from broker_core.pipeline.kept_answers import KeptAnswers
from broker_core.pipeline.last_answers import LastAnswers
from broker_core.pipeline.run import Listed, Run
from broker_core.pipeline.workers import Workers
from broker_core.plugins import Dispatcher, LoadedPlugin
from broker_core.questions import QuestionCounter
from broker_core.selection import Selection

__all__ = ["Pipeline", "PipelineOptions"]

#: Hashing or gathering so many bytes at most is done on the event loop (a few hundred microseconds).
_QUICK_BYTES = 512 * 1024
_TINY_BYTES = 8 * 1024
#: The share of the heap permits that a plugin's answer about a new namespace is taken to need.
_UNKNOWN_SHARE = 4
#: So many names are checked and encoded on the event loop.
_QUICK_NAMES = 500
#: A column of names costs this many times its bytes until it is a listing (measured: 5.0 in order, 7.5 in disorder).
_BUILD_FACTOR = 8
#: Characters of an error that observers are told.
_LONGEST_TOLD = 4096

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class PipelineOptions:
    """``evaluate`` false: no pattern is ever applied here. ``unsupported``: what a pattern gets that RE2 refuses.

    ``max_length`` counts UTF-16 units of a pattern; ``time_budget`` is in seconds, for permits, chain and the begin of
    the write together, and below the 30 s that clients wait. ``selecting_keys`` are the properties that are counted in
    :attr:`Pipeline.questions`.
    """

    evaluate: bool = True
    unsupported: Literal["unfiltered", "error"] = "unfiltered"
    max_length: int = 1024
    time_budget: float = 28.0
    selecting_keys: frozenset[str] = frozenset()


class Pipeline:
    """Answers listing requests; one for all transports of a broker."""

    def __init__(
        self,
        lister: DefaultLister,
        dispatcher: Dispatcher,
        permits: Permits,
        metrics: Metrics,
        options: PipelineOptions | None = None,
    ) -> None:
        self.lister = lister
        self.dispatcher = dispatcher
        self.permits = permits
        self.metrics = metrics
        self.options = options or PipelineOptions()
        self.estimates = Estimates()
        self.answers = AnswerStore(permits.snapshots, permits.leases)
        self.kept = KeptAnswers(self.answers)
        self._last = LastAnswers(self.answers)
        self.questions = QuestionCounter()
        self.workers = Workers()
        metrics.watch_threads(self.workers.kinds)

    def close(self) -> None:
        """End the threads once what they do is done; nothing is answered after this."""
        self.workers.close()

    def compile(self, topics_pattern: str) -> TopicsPattern:
        """A client's pattern, compiled under the operator's bounds. Raises :exc:`ListingFailed`."""
        try:
            return compile_pattern(topics_pattern, max_length=self.options.max_length)
        except InvalidPattern as error:
            raise _bad_pattern(error) from None

    def compile_now(self, topics_pattern: str) -> TopicsPattern | None:
        """The same if it takes about a millisecond at most and the loop has time for it, else ``None``."""
        try:
            return compile_now(
                topics_pattern, max_length=self.options.max_length, has_time=loop_turn().has_time
            )
        except InvalidPattern as error:
            raise _bad_pattern(error) from None

    async def with_pattern(self, request: ListingRequest, topics_pattern: str) -> ListingRequest:
        """The request with this pattern, compiled in a thread within its deadline. Raises :exc:`ListingFailed`."""
        started = time.perf_counter()
        try:
            async with asyncio.timeout_at(request.deadline):
                pattern = await self.workers.compile(request.asker, topics_pattern, self.options.max_length)
        except InvalidPattern as error:
            raise _bad_pattern(error) from None
        except TimeoutError:
            failure = self._too_late()
            self._refused(request, failure, time.perf_counter() - started)
            try:
                raise failure from None
            finally:
                del failure
        return replace(request, pattern=pattern)

    def _too_late(self) -> TooManyRequests:
        return TooManyRequests(f"The listing took longer than {self.options.time_budget:g} s", reason="time")

    def answer_now(self, request: ListingRequest) -> Answer | None:
        """The answer if it takes no waiting and well under a millisecond, else ``None``.

        Raises :exc:`ListingFailed` for what cannot be answered.
        """
        if self.dispatcher.lists(request.namespace) or self.dispatcher.masks(request.namespace):
            return None
        started = time.perf_counter()
        try:
            answer = self._at_once(request)
        except Exception as error:  # noqa: BLE001  # see _failure
            failure = self._failure(request, error)
            self._refused(request, failure, time.perf_counter() - started)
            try:
                raise failure from error.__cause__
            finally:
                del failure  # in its own traceback, it would keep all that this request had
        if answer is not None:
            self._served(request, answer, time.perf_counter() - started)
        return answer

    def _at_once(self, request: ListingRequest) -> Answer | None:
        pattern = self._applied(request)
        # Without time left in this turn only what is known already, and a few small pieces.
        has_time = loop_turn().has_time()
        if request.properties and not has_time:
            return None
        quick_bytes = _QUICK_BYTES if has_time else _TINY_BYTES
        result = self.lister.list_now(request)
        if result is None:
            return None
        selection = known_selection(result, request)
        if selection is None:
            return None
        if pattern is not None:
            known = selection.known_matching(pattern)
            if known is None:
                if not (has_time and selection.matching_is_quick(pattern)):
                    return None
                known = selection.matching(pattern)
            selection = known
        if not selection.hash_known and selection.fields_size > quick_bytes:
            return None
        topics_hash = selection.topics_hash
        filtered, plan = pattern is not None, _plan(request, pattern)
        if topics_hash == request.topics_hash:
            return Answer(None, topics_hash, filtered, self.lister.name, plan)
        if not selection.is_slice and selection.fields_size > quick_bytes:
            return None
        permit = self.permits.heap.try_acquire(selection.heap_bytes)
        if permit is None:
            return None
        return Answer(selection, topics_hash, filtered, self.lister.name, plan, permit)

    async def answer(self, request: ListingRequest, trace: Trace | None = None) -> Answer:
        """The answer to a request, within its deadline. Raises :exc:`ListingFailed`; never a shortened success."""
        started = time.perf_counter()
        try:
            answer = await self._in_time(request, trace)
        except Exception as error:  # noqa: BLE001  # see _failure
            failure = self._failure(request, error)
            self._refused(request, failure, time.perf_counter() - started)
            try:
                raise failure from error.__cause__
            finally:
                del failure  # in its own traceback, it would keep all that this request had
        self._served(request, answer, time.perf_counter() - started)
        return answer

    def _failure(self, request: ListingRequest, error: Exception) -> ListingFailed:
        """What the client is told. Whatever it is, the client gets an error, and the log the rest."""
        if isinstance(error, ListingFailed):
            return error
        if isinstance(error, BrokerCoreError):
            failure = ListingFailed(str(error))
        else:
            # Not foreseen, so nothing is known of what it left behind.
            _log.error(
                "listing failed", namespace=str(request.namespace), mode=request.mode.name, exc_info=error
            )
            failure = ListingFailed(f"Internal error: {type(error).__name__}", reason="internal")
        failure.__cause__ = error
        return failure

    async def _in_time(self, request: ListingRequest, trace: Trace | None) -> Answer:
        budget = asyncio.timeout_at(request.deadline)
        try:
            async with budget:
                return await self._answer(request, trace)
        except TimeoutError:
            if not budget.expired():
                raise
            raise self._too_late() from None

    async def _answer(self, request: ListingRequest, trace: Trace | None) -> Answer:
        await loop_turn().time()
        pattern = self._applied(request)
        question = (request.mode, request.topics_pattern, frozenset(request.properties.items()))
        # What a plugin returns is there before it can be counted, so that few are asked about what nobody knows.
        unknown = (
            self.permits.heap.maximum // _UNKNOWN_SHARE if self.dispatcher.lists(request.namespace) else 0
        )
        estimate = self.estimates.of(request.namespace, (request.namespace, *question), unknown)
        held = HeldPermit(self.permits, estimate, request.asker.connection)
        run = Run(replace(request, reserve_bytes=held.reserve), pattern, held, trace)
        try:
            await held.acquire_estimate()
            if trace is not None:
                trace.permits["estimate"] = held.count
            return await self._finish(run, await self._list(run))
        except BaseException:
            held.give_up()
            raise

    def _applied(self, request: ListingRequest) -> TopicsPattern | None:
        """The pattern that the core applies to this request, if any."""
        pattern = request.pattern
        if pattern is None or not self.options.evaluate:
            return None
        if pattern.supported:
            return pattern
        if self.options.unsupported == "error":
            raise ListingFailed(
                f"Unsupported topics pattern {request.topics_pattern!r:.400}: {pattern.reason}",
                reason="bad_pattern",
            )
        return None

    async def _list(self, run: Run) -> Listed:
        """Ask the plugins in order, then the default lister."""
        request = run.request
        if self.dispatcher.masks(request.namespace) and request.topics_hash is not None:
            # A mask changes what the client's hash is of: whoever lists must not compare it with the whole.
            request = replace(request, topics_hash=None)
        if self.dispatcher.lists(request.namespace):
            # A pattern that is never compiled is too long to be remembered.
            memory = None if self._is_long(request) else self._last.to(request, run.pattern)
            chain = await self.dispatcher.ask(request, partial(self._accept, run), memory)
            if run.trace is not None:
                run.trace.chain = list(chain.steps)
            for step in chain.steps:
                if step.stale is not None:
                    self.metrics.stale_answer(step.plugin, step.stale)
            if chain.accepted is not None:
                accepted: Listed = chain.accepted
                return accepted
        if not self.options.evaluate:
            request = replace(request, pattern=None)
        result = await self.lister.list_topics(request)
        try:
            return await self._accept(run, None, result)
        except TooManyRequests:
            raise
        except ListingFailed as failure:
            raise ListingFailed(f"{self.lister.name} {failure.message}", reason=failure.reason) from failure

    async def _accept(self, run: Run, plugin: LoadedPlugin | None, result: TopicListingResult) -> Listed:
        """Check what a plugin, or the default lister, returned. Raises :exc:`ListingFailed`."""
        lister = self.lister.name if plugin is None else plugin.name
        request, pattern = run.request, run.pattern
        if result.kind is AnswerKind.UNCHANGED:
            if result.topics_hash is None or result.topics_hash != request.topics_hash:
                raise ListingFailed("answered unchanged to a request without that hash", reason="bad_topics")
            applied = pattern if plugin is not None else request.pattern if self.options.evaluate else None
            return Listed(lister, None, applied is not None, result.topics_hash)
        selection = known_selection(result, request)
        owned = 0
        if selection is not None:
            returned = len(selection)
            if result.owned:
                owned = selection.listing.column_bytes
        else:
            selection, returned, owned = await self._build(run, plugin, result)
        said = own_hash(result, selection, returned)
        trusted = plugin is not None and plugin.options.verify_filtered == "never"
        listed = Listed(lister, selection, False, said if trusted else None, result.filtered, owned)
        if plugin is not None and not trusted:
            listed.said_hash = said
        if not result.filtered:
            return listed
        if plugin is None:
            # Brokers upstream evaluate patterns themselves, with an engine that may know more than RE2.
            listed.filtered = request.pattern is not None and self.options.evaluate
            return listed
        if pattern is None:
            return listed  # nothing here can tell whether it is true, so the client filters
        if selection.pattern == pattern.text:
            # By the core's own engine. Even to ask whether looking again is quick would make columns of the names.
            listed.filtered = True
            return listed
        sample = claim_sample(selection, pattern, VerifyFiltered(plugin.options.verify_filtered))
        listed.filtered = sample is None or len(sample) == len(
            await self.workers.matching(request.asker, sample, pattern)
        )
        if not listed.filtered:
            self.dispatcher.claim_mismatch(plugin.name, len(selection))
            if run.trace is not None:
                run.trace.false_claims.append(
                    f"plugin {plugin.name!r} says that it filtered (filtered=True), but not all of the "
                    f"{len(selection)} topics that it listed match the pattern: the server filters them"
                )
        return listed

    async def _build(
        self, run: Run, plugin: LoadedPlugin | None, result: TopicListingResult
    ) -> tuple[Selection, int, int]:
        """The selection of the names returned, how many there were, and the bytes built for this request alone."""
        request = run.request
        key = None
        await run.held.reserve(given_bytes(result.topics))
        if result.version is not None and plugin is not None and not self._is_long(request):
            key = answer_key(plugin, request, filtered=result.filtered)
            kept = self.kept.get(key, result.version)
            if kept is not None:
                return kept[0].all(), kept[1], 0
        try:
            names = await self._column(run, result.topics)
            await run.held.reserve(given_bytes(result.topics) + _BUILD_FACTOR * names.nbytes)
            small = len(names) <= _QUICK_NAMES
            listing = await self.workers.call(request.asker, partial(built, request, names), quick=small)
        except (InvalidListing, pa.ArrowException) as error:
            raise ListingFailed(f"returned a bad topic: {error}", reason="bad_topics") from None
        if key is not None and result.version is not None:
            if self.kept.put(key, result.version, listing, len(names), text=key.text):
                return listing.all(), len(names), 0  # charged where it is kept
        return listing.all(), len(names), listing.column_bytes

    async def _column(self, run: Run, topics: Any) -> pa.LargeStringArray:
        """The names that a plugin returned as a column, which there is room for before it is made."""
        if len(topics) <= _QUICK_NAMES:
            return as_column(topics)
        given = given_bytes(topics)
        await run.held.reserve(2 * given)
        return await self.workers.call(run.request.asker, partial(as_column, topics))

    async def _finish(self, run: Run, listed: Listed) -> Answer:
        """Filter, mask and hash what was listed, and take permits for what is sent."""
        await loop_turn().time()
        request, pattern, held = run.request, run.pattern, run.held
        selection, topics_hash, filtered = listed.selection, listed.topics_hash, listed.filtered
        plan = "lister" if filtered else _plan(request, pattern)
        if selection is None:
            assert topics_hash is not None
            held.settle(0, made=False)
            return Answer(None, topics_hash, filtered, listed.lister, plan, held.hand_over(), listed.stale)
        returned = len(selection)
        if run.trace is not None:
            run.trace.listed = returned
        if pattern is not None and not filtered:
            selection = await self.workers.matching(request.asker, selection, pattern)
            filtered = True
        if self.dispatcher.masks(request.namespace):
            selection = await self._masked(run, selection, listed.owned)
        if topics_hash is None or len(selection) != returned:
            quick = selection.hash_known or selection.fields_size <= _QUICK_BYTES
            if not quick:
                await held.reserve(listed.owned + selection.heap_bytes)
            topics_hash = await self.workers.call(request.asker, partial(_hash, selection), quick=quick)
            if listed.said_hash not in {None, topics_hash} and len(selection) == returned:
                self.dispatcher.hash_mismatch(listed.lister, returned)
                if run.trace is not None:
                    run.trace.false_claims.append(
                        f"plugin {listed.lister!r} gave the topics hash {listed.said_hash!r}, but that of its topics "
                        f"is {topics_hash!r}: the server sends that"
                    )
        if topics_hash == request.topics_hash:
            held.settle(0)
            return Answer(None, topics_hash, filtered, listed.lister, plan, held.hand_over(), listed.stale)
        await held.reserve(listed.owned + selection.heap_bytes)
        needed = selection.heap_bytes
        if listed.owned:
            # Built for this answer alone: what the client gets is all that is kept until it has left.
            own = selection.fields_size + 8 * len(selection)
            await held.reserve(listed.owned + own)
            quick = own <= _QUICK_BYTES
            selection = await self.workers.call(request.asker, selection.on_its_own, quick=quick)
            needed = selection.listing.column_bytes
        held.settle(needed)
        if run.trace is not None:
            run.trace.permits["held"] = needed
        return Answer(selection, topics_hash, filtered, listed.lister, plan, held.hand_over(), listed.stale)

    async def _masked(self, run: Run, selection: Selection, owned: int) -> Selection:
        trace = run.trace
        small = len(selection) <= _QUICK_NAMES
        # The column of names is made for the masks: their bytes, and their offsets twice.
        names_bytes = selection.fields_size + 16 * len(selection)
        await run.held.reserve(owned + selection.heap_bytes + names_bytes)
        asker = run.request.asker
        names = await self.workers.call(asker, lambda: selection.names, quick=small)
        mask = await self.dispatcher.visible(run.request, names, steps=None if trace is None else trace.masks)
        visible = selection
        if mask is not None:
            keep = mask.to_numpy(zero_copy_only=False)
            visible = await self.workers.call(asker, partial(selection.mask, keep), quick=small)
        if trace is not None:
            trace.visible = len(visible)
        return visible

    def _served(self, request: ListingRequest, answer: Answer, seconds: float) -> None:
        outcome = "served" if answer.changed else "unchanged"
        self.metrics.listing(outcome, answer.plan, answer.topics, seconds)
        properties = {
            key: value for key, value in request.properties.items() if key in self.options.selecting_keys
        }
        self.questions.record(
            str(request.namespace), request.mode, request.topics_pattern, properties, seconds
        )
        if self.dispatcher.has_observers:
            told = ListingOutcome(
                outcome,
                answer.lister,
                answer.topics,
                answer.filtered,
                answer.topics_hash,
                seconds,
                stale_seconds=answer.stale,
            )
            self._tell(request, told)

    def _refused(self, request: ListingRequest, failure: ListingFailed, seconds: float) -> None:
        self.metrics.listing_refused(failure.reason, seconds)
        if self.dispatcher.has_observers:
            message = failure.message[:_LONGEST_TOLD]
            self._tell(request, ListingOutcome("error", failure.plugin, 0, False, None, seconds, message))

    def _tell(self, request: ListingRequest, outcome: ListingOutcome) -> None:
        """Tell the observers, who may have many requests in front of them: of a pattern of megabytes only the begin."""
        if request.pattern is not None and self._is_long(request):
            shown = request.pattern.raw[: self.options.max_length]
            request = replace(request, pattern=replace(request.pattern, raw=shown, text=shown))
        self.dispatcher.listing_served(request, outcome)

    def _is_long(self, request: ListingRequest) -> bool:
        """Whether a pattern is longer than is ever compiled, and so than is worth remembering."""
        return request.pattern is not None and len(request.pattern.raw) > self.options.max_length


def _bad_pattern(error: InvalidPattern) -> ListingFailed:
    return ListingFailed(str(error), reason="bad_pattern")


def _hash(selection: Selection) -> str:
    return selection.topics_hash


def _plan(request: ListingRequest, pattern: TopicsPattern | None) -> str:
    if pattern is not None:
        return pattern.plan
    return "none" if request.pattern is None or request.pattern.supported else "unsupported"
