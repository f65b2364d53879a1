"""The one path of a listing: permits, plugins, checks, filter, masks, hash.

docs/explanation/path-of-a-listing.md tells it in the order of the steps.

Two ways lead along it. :meth:`Pipeline.answer_now` answers at once where that takes well under a millisecond and
nobody has to be waited for: no plugin is concerned, the snapshot is in memory and current, the pattern is a range, a
short scan or one that was just asked. Everything else goes :meth:`Pipeline.answer`, which waits for permits, asks the
plugins and gives long work to threads, whose kernels run without the interpreter's lock.
"""

from __future__ import annotations

import time
from dataclasses import replace

import structlog

from broker_core.access.access import Access
from broker_core.concurrency.loop_turn import loop_turn
from broker_core.errors import BrokerCoreError, Cause, InvalidPattern, ListingFailed
from broker_core.immutable.copies import copied
from broker_core.listing.selection_search import search, search_is_quick
from broker_core.memory.estimates import Estimates
from broker_core.memory.permits import Permits
from broker_core.metrics.frequent_questions import QuestionCounter
from broker_core.metrics.metrics import Metrics
from broker_core.names import TopicName
from broker_core.patterns import TopicsPattern, compile_pattern
from broker_core.patterns.compile_with_re2 import compile_now
from broker_core.pipeline.accept_answer import Acceptance
from broker_core.pipeline.answer import Answer, Trace
from broker_core.pipeline.ask_listers import Listers
from broker_core.pipeline.call_services import CallServices
from broker_core.pipeline.change_notices import ChangeNotices
from broker_core.pipeline.finish_answer import Finishing
from broker_core.pipeline.held_permit import HeldPermit
from broker_core.pipeline.listing_details import ListingDetails
from broker_core.pipeline.listing_in_progress import QUICK_BYTES, ListingInProgress, listing_plan
from broker_core.pipeline.options import PipelineOptions
from broker_core.pipeline.page_orders import PageOrders
from broker_core.pipeline.paging import Paging
from broker_core.pipeline.remembered.answer_store import AnswerStore
from broker_core.pipeline.remembered.answers_by_version_hook import AnswersByVersionHook
from broker_core.pipeline.remembered.last_good_answers import LastGoodAnswers
from broker_core.pipeline.remembered.listings_by_result_version import ListingsByResultVersion
from broker_core.pipeline.remembered.masked_answers import MaskedAnswers
from broker_core.pipeline.time_budget import TimeBudget
from broker_core.pipeline.topic_by_name import TopicsByName
from broker_core.pipeline.verification.verify_names import known_selection
from broker_core.pipeline.worker_threads import Workers
from broker_core.plugin_api.depends_on import EVERYTHING
from broker_core.plugin_api.hookspecs import ListingOutcome
from broker_core.plugin_api.listing_request import ListingRequest
from broker_core.plugin_api.listing_result import DefaultLister
from broker_core.plugins import ChainStep, Dispatcher

__all__ = ["Pipeline"]

_TINY_BYTES = 8 * 1024
#: The share of the heap permits that a plugin's answer about a new namespace is taken to need.
_UNKNOWN_SHARE = 4
#: Characters of an error that observers are told.
_LONGEST_TOLD = 4096

_log = structlog.get_logger(__name__)


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
        self._budget = TimeBudget.of_listings(self.options.time_budget)
        self.estimates = Estimates()
        self.answers = AnswerStore(permits.snapshots, permits.leases)
        self.kept = ListingsByResultVersion(self.answers)
        #: Who is told that topics or masks changed.
        self.changes = ChangeNotices()
        self.changes.subscribe(self.kept.forget)
        self.questions = QuestionCounter()
        self.workers = Workers()
        orders = PageOrders(permits, self.workers)
        detailing = ListingDetails(lister, dispatcher, self.workers, orders)
        words = dispatcher.dependencies.of
        self._listers = Listers(
            lister,
            dispatcher,
            Acceptance(lister, dispatcher, self.workers, self.kept, self.options, detailing),
            LastGoodAnswers(self.answers, words),
            AnswersByVersionHook(self.answers, words, self.changes),
            self.workers,
            self.options,
            metrics,
        )
        self._finishing = Finishing(
            dispatcher,
            self.workers,
            detailing,
            MaskedAnswers(self.answers, dispatcher.mask_hook.depends_on, self.changes),
        )
        #: One topic by its name.
        self.topics_by_name = TopicsByName(
            lister, dispatcher, permits, self.workers, detailing, self.options, self._listers.of_plugins
        )
        self._paging = Paging(dispatcher, self.workers, orders, detailing)
        self.workers.show(metrics)

    def close(self) -> None:
        """End the threads once what they do is done; nothing is answered after this."""
        self.workers.close()

    def compile(self, topics_pattern: str) -> TopicsPattern:
        """A client's pattern, compiled under the operator's bounds. Raises :exc:`ListingFailed`."""
        try:
            return compile_pattern(topics_pattern, max_length=self.options.patterns.max_length)
        except InvalidPattern as error:
            raise _bad_pattern(error) from None

    def compile_now(self, topics_pattern: str) -> TopicsPattern | None:
        """The same if it takes about a millisecond at most and the loop has time for it, else ``None``."""
        try:
            return compile_now(
                topics_pattern, max_length=self.options.patterns.max_length, has_time=loop_turn().has_time
            )
        except InvalidPattern as error:
            raise _bad_pattern(error) from None

    async def with_pattern(self, request: ListingRequest, topics_pattern: str) -> ListingRequest:
        """The request with this pattern, compiled in a thread within its deadline. Raises :exc:`ListingFailed`."""
        started = time.perf_counter()
        try:
            async with self._budget.until(request.deadline):
                pattern = await self.workers.compile(
                    request.asker, topics_pattern, self.options.patterns.max_length
                )
        except InvalidPattern as error:
            raise _bad_pattern(error) from None
        except ListingFailed as late:
            self._refused(request, late, time.perf_counter() - started)
            raise
        return replace(request, pattern=pattern)

    def answer_now(self, request: ListingRequest) -> Answer | None:
        """The answer if it takes no waiting and well under a millisecond, else ``None``.

        Raises :exc:`ListingFailed` for what cannot be answered.
        """
        if self.dispatcher.concerned(request.namespace):
            return None
        if request.page is not None or request.wants:
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
        pattern = self._listers.applied(request)
        # Without time left in this turn only what is known already, and a few small pieces.
        has_time = loop_turn().has_time()
        if request.properties and not has_time:
            return None
        quick_bytes = QUICK_BYTES if has_time else _TINY_BYTES
        result = self.lister.list_now(request)
        if result is None:
            return None
        selection = known_selection(result, request)
        if selection is None:
            return None
        if pattern is not None:
            known = selection.known_matching(pattern)
            if known is None:
                if not (has_time and search_is_quick(selection, pattern)):
                    return None
                known = search(selection, pattern)
            selection = known
        if not selection.hash_known and selection.fields_size > quick_bytes:
            return None
        topics_hash = selection.topics_hash
        filtered, plan = pattern is not None, listing_plan(request, pattern)
        if topics_hash == request.topics_hash:
            return Answer(None, topics_hash, filtered, self.lister.name, plan)
        if not selection.is_slice and selection.fields_size > quick_bytes:
            return None
        permit = self.permits.heap.try_acquire(selection.heap_bytes)
        if permit is None:
            return None
        return Answer(selection, topics_hash, filtered, self.lister.name, plan, permit)

    async def authorize(
        self, access: Access, deadline: float | None = None, steps: list[ChainStep] | None = None
    ) -> None:
        """Ask all gates whether this may be done, by ``deadline`` (else within the time of a listing).

        Raises :exc:`ListingFailed`, with the cause ``DENIED`` unless a gate says another, or ``TIME``. Without a gate
        everything may be done.
        """
        if not self.dispatcher.gates(access.namespace):
            return
        async with self._budget.until(self._budget.deadline() if deadline is None else deadline):
            await self.dispatcher.authorize(access, steps)

    async def answer(
        self, request: ListingRequest, trace: Trace | None = None, *, topics_pattern: str | None = None
    ) -> Answer:
        """The answer to a request, within its deadline. Raises :exc:`ListingFailed`; never a shortened success.

        A ``topics_pattern`` is one that the request does not have yet, and that takes a thread to compile.
        """
        if self.dispatcher.gates(request.namespace):
            await self._authorize(request, trace)
        if topics_pattern is not None:
            request = await self.with_pattern(request, topics_pattern)
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

    async def _authorize(self, request: ListingRequest, trace: Trace | None) -> None:
        started = time.perf_counter()
        access = Access("list", request.namespace, None, request.asker)
        try:
            await self.authorize(access, request.deadline, None if trace is None else trace.gates)
        except ListingFailed as failure:
            self._refused(request, failure, time.perf_counter() - started)
            raise

    def _failure(self, request: ListingRequest, error: Exception) -> ListingFailed:
        """What the client is told. Whatever it is, the client gets an error, and the log the rest."""
        if isinstance(error, ListingFailed):
            return error
        if isinstance(error, BrokerCoreError):
            failure = ListingFailed(str(error), cause=Cause.INTERNAL)
        else:
            # Not foreseen, so nothing is known of what it left behind.
            _log.error(
                "listing failed", namespace=str(request.namespace), mode=request.mode.name, exc_info=error
            )
            failure = ListingFailed(
                f"Internal error: {type(error).__name__}", cause=Cause.INTERNAL, reason="internal"
            )
        failure.__cause__ = error
        return failure

    async def _in_time(self, request: ListingRequest, trace: Trace | None) -> Answer:
        async with self._budget.until(request.deadline):
            return await self._answer(request, trace)

    async def _answer(self, request: ListingRequest, trace: Trace | None) -> Answer:
        await loop_turn().time()
        pattern = self._listers.applied(request)
        if request.page is not None or request.wants:
            # A hash is of all names, and of nothing but names.
            request = replace(request, topics_hash=None)
            _check_start(request)
        question = (request.mode, request.topics_pattern, frozenset(request.properties.items()))
        # What a plugin returns is there before it can be counted, so that few are asked about what nobody knows.
        unknown = (
            self.permits.heap.maximum // _UNKNOWN_SHARE if self.dispatcher.lists(request.namespace) else 0
        )
        estimate = self.estimates.of(request.namespace, (request.namespace, *question), unknown)
        held = HeldPermit(self.permits, estimate, request.asker.connection)
        services = CallServices(request, "", held, _everything, None, len)
        services.mark = lambda: self.changes.mark(request.namespace)
        progress = ListingInProgress(
            copied(request, reserve_bytes=held.reserve, services=services), pattern, held, trace
        )
        try:
            await held.acquire_estimate()
            if trace is not None:
                trace.permits["estimate"] = held.count
            accepted = await self._listers.list(progress)
            if request.page is not None:
                return await self._paging.page(progress, accepted, self._listers.list)
            return await self._finishing.finish(progress, accepted)
        except BaseException:
            held.give_up()
            raise

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
            self._tell(
                request,
                ListingOutcome(
                    "error", failure.plugin, 0, False, None, seconds, message, cause=failure.cause
                ),
            )

    def _tell(self, request: ListingRequest, outcome: ListingOutcome) -> None:
        """Tell the observers, who may have many requests in front of them: of a pattern of megabytes only the begin."""
        if request.pattern is not None and self.options.is_long(request):
            request = replace(request, pattern=request.pattern.shortened(self.options.patterns.max_length))
        self.dispatcher.observers.tell(request, outcome)


def _everything() -> frozenset[str]:
    return EVERYTHING


def _check_start(request: ListingRequest) -> None:
    """A page begins in the namespace that is listed."""
    start = None if request.page is None else request.page.start
    if start is not None and TopicName.parse(start.base).namespace != request.namespace:
        raise ListingFailed(
            f"A page of {request.namespace} cannot begin at {start.name!r:.250}",
            cause=Cause.BAD_REQUEST,
            reason="bad_request",
        )


def _bad_pattern(error: InvalidPattern) -> ListingFailed:
    return ListingFailed(str(error), cause=Cause.PATTERN, reason="bad_pattern")
