"""The one path of a listing: permits, plugins, checks, filter, masks, hash.

docs/explanation/path-of-a-listing.md describes it in the order of the steps.

Two ways lead along it. :meth:`Pipeline.answer_now` answers at once if that takes well under a millisecond and no
waiting: no plugin is concerned, the snapshot is in memory and current, the pattern is a range, a short scan or one that
was just asked. Everything else goes :meth:`Pipeline.answer`, which waits for permits, asks the plugins and gives long
work to threads, whose kernels run without the interpreter's lock.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import replace

from broker_core.access import Access, Asker, Authorization
from broker_core.change_log import ChangeLog
from broker_core.concurrency import has_time, loop_turn
from broker_core.errors import Cause, InvalidPattern, ListingFailed, TooManyRequests
from broker_core.guards import ShrinkGuard
from broker_core.immutable import copied
from broker_core.listing import Listing
from broker_core.memory import Estimates, Permits
from broker_core.metrics import Metrics
from broker_core.names import Mode, NamespaceName, TopicName
from broker_core.patterns import REMEMBERED, TopicsPattern, compile_now
from broker_core.pipeline.answer import (
    Answer,
    QuestionText,
    QuestionWarnings,
    ReusableAnswer,
    Trace,
    has_hash,
    without_hash,
)
from broker_core.pipeline.change_notices import ChangeNotices
from broker_core.pipeline.filter_hash_and_permits import Finishing
from broker_core.pipeline.listers.accept_answer import Acceptance, GuardedAnswers
from broker_core.pipeline.listers.answer_store import AnswerStore
from broker_core.pipeline.listers.ask_listers import Listers
from broker_core.pipeline.listers.former_answers import FormerAnswers
from broker_core.pipeline.listers.listing_details import ListingDetails
from broker_core.pipeline.masks_of_plugins import MaskedAnswers
from broker_core.pipeline.paging import Paging
from broker_core.pipeline.reports.event_sinks import EventSinks, answered, question_attributes, refused
from broker_core.pipeline.reports.finished_listings import Ended, FinishedListings, log_denial
from broker_core.pipeline.request.held_permit import HeldPermit, sizes_of, unknown_size
from broker_core.pipeline.request.listing_in_progress import ListingInProgress, ListingTables
from broker_core.pipeline.request.unsupported_patterns import PipelineOptions, applied_pattern
from broker_core.pipeline.runs.time_budget import TimeBudget
from broker_core.pipeline.runs.worker_threads import Workers
from broker_core.pipeline.topic_questions import TopicQuestions
from broker_core.plugin_api import (
    EVERYTHING,
    NO_PROPERTIES,
    DefaultLister,
    ListingRequest,
    Properties,
    RequestServices,
)
from broker_core.plugins import ChainStep, Dispatcher
from broker_core.settings import LimitsSettings, ShrinkGuardSettings
from broker_core.tracing import stage

__all__ = ["Pipeline"]


class Pipeline:
    """Answers listing requests; one for all transports of a broker."""

    def __init__(
        self,
        lister: DefaultLister,
        dispatcher: Dispatcher,
        permits: Permits,
        metrics: Metrics,
        options: PipelineOptions | None = None,
        *,
        authorization: Authorization | None = None,
        sinks: EventSinks | None = None,
        guard: ShrinkGuard | None = None,
        change_log: ChangeLog | None = None,
    ) -> None:
        self.lister = lister
        self.dispatcher = dispatcher
        self.permits = permits
        self.metrics = metrics
        self.options = options or PipelineOptions()
        self._authorization = authorization or Authorization()
        #: Called once there are other rules.
        self.on_rules: list[Callable[[], None]] = []
        self._budget = TimeBudget(self.options.time_budget, "The listing took longer than", TooManyRequests)
        self.estimates = Estimates()
        self.answers = AnswerStore(permits.snapshots, permits.leases)
        permits.caches.show("plugin answers", self.answers.state)
        permits.caches.show_bounded("patterns", REMEMBERED)
        #: The subscribers to changes of topics or masks.
        self.changes = ChangeNotices()
        self.changes.subscribe(self.answers.forget)
        #: The further sinks of listing events, besides the metrics.
        self.sinks = sinks or EventSinks()
        #: Whether listing events are reported besides the metrics.
        self.has_sinks = bool(self.sinks)
        #: Called with a question, and facts of its answer; returns warnings for the client.
        self.warnings = QuestionWarnings(lister, dispatcher).of
        self._finished = FinishedListings(metrics, dispatcher, self.options, self.sinks, self.warnings)
        #: The guard that holds listings which lose many topics at once.
        self.guard = guard or ShrinkGuard(ShrinkGuardSettings(enabled=False))
        #: The change log of the catalogue, or of a gateway's listings; ``None`` if there is none.
        self.own_log = change_log
        #: How often each question was asked.
        self.questions = self._finished.questions
        self.workers = Workers()
        detailing = ListingDetails(lister, dispatcher, self.workers)
        self._listers = Listers(
            lister,
            dispatcher,
            Acceptance(lister, dispatcher, self.workers, self.answers, self.options, detailing),
            FormerAnswers(self.answers, dispatcher.dependencies.of, self.changes),
            self.workers,
            self.options,
            self.changes,
            metrics,
            GuardedAnswers(self.guard, dispatcher, lambda: self.change_logs, self.options.guarded),
        )
        self._finishing = Finishing(
            dispatcher,
            self.workers,
            detailing,
            MaskedAnswers(self.answers, dispatcher.mask_hook.depends_on, self.changes),
            permits.heap,
        )
        #: Questions to plugins, brokers and masks about single topics.
        self.topic_questions = TopicQuestions(
            lister, dispatcher, permits, detailing, self.workers, self.options, self._listers
        )
        self._paging = Paging(dispatcher, self.workers, detailing)
        self.workers.show(metrics)

    @property
    def change_logs(self) -> tuple[ChangeLog, ...]:
        """All change logs: the pipeline's own, then the plugins'."""
        own = () if self.own_log is None else (self.own_log,)
        return (*own, *self.dispatcher.change_logs)

    @property
    def authorization(self) -> Authorization:
        """The rules of the settings: every way to an answer asks them first. Keep no reference to them: they may be
        replaced at any time.
        """
        return self._authorization

    @authorization.setter
    def authorization(self, rules: Authorization) -> None:
        self._authorization = rules
        for on_rules in self.on_rules:
            on_rules()

    def close(self) -> None:
        """End the threads once their running work is done; nothing is answered after this."""
        self.workers.close()

    def question(
        self,
        limits: LimitsSettings,
        asker: Asker,
        namespace: NamespaceName,
        mode: Mode,
        pattern: str | None,
        properties: Sequence[tuple[str, str]],
        *,
        deadline: float,
        topics_hash: str | None = None,
    ) -> tuple[ListingRequest, str | None]:
        """The question of a client, with every bound on its parts, for all transports; and its pattern if that takes a
        thread to compile: then the question is without it.

        Of a repeated key of ``properties`` the last counts, as at a broker; ``deadline`` is in loop time. Raises
        :exc:`ListingFailed`.
        """
        # A client that must pass a gate first, or may not list this, costs nothing before that.
        later = pattern is None or not self.passes_now(asker, namespace)
        compiled = None if pattern is None or later else self.compile_now(pattern)
        request = ListingRequest(
            namespace=namespace,
            mode=mode,
            pattern=compiled,
            topics_hash=topics_hash,
            properties=_checked(properties, limits) if properties else NO_PROPERTIES,
            asker=asker,
            deadline=deadline,
        )
        return request, pattern if compiled is None else None

    def compile_now(self, topics_pattern: str) -> TopicsPattern | None:
        """A compiled pattern if it takes about a millisecond at most and the loop has time for it, else ``None``."""
        try:
            return compile_now(topics_pattern, max_length=self.options.patterns.max_length, has_time=has_time)
        except InvalidPattern as error:
            raise _bad_pattern(error) from None

    async def with_pattern(
        self, request: ListingRequest, topics_pattern: str, trace: Trace | None = None
    ) -> ListingRequest:
        """The request with this pattern, compiled in a thread within its deadline. Raises :exc:`ListingFailed`."""
        started = time.perf_counter()
        try:
            async with self._budget.until(request.deadline):
                with stage("compile"):
                    longest = self.options.patterns.max_length
                    pattern = await self.workers.compile(request.asker, topics_pattern, longest)
        except (InvalidPattern, ListingFailed) as error:
            failure = _bad_pattern(error) if isinstance(error, InvalidPattern) else error
            self._finished.refused(request, failure, started, trace, topics_pattern)
            raise failure from None
        return replace(request, pattern=pattern)

    def refused(self, question: QuestionText, asker: Asker, failure: ListingFailed) -> None:
        """Count and report a question that a transport refuses before it asks this pipeline.

        No effect if the failure is one of this pipeline itself.
        """
        self._finished.refused_at_once(question, asker, failure)

    def answer_now(self, request: ListingRequest, *, tables: ListingTables | None = None) -> Answer | None:
        """The answer if it takes no waiting and well under a millisecond, else ``None``; also if rules hide topics.

        ``tables`` are those of the default lister, as in :meth:`answer`.

        Raises :exc:`ListingFailed` for what cannot be answered. A question that the rules deny gets ``None`` here: the
        long way refuses it.
        """
        if (
            self.dispatcher.concerned(request.namespace)
            or not has_hash(request)
            or self.authorization.listed(request.asker, str(request.namespace)) is not True
        ):
            return None
        started = time.perf_counter()
        try:
            pattern = applied_pattern(request, self.options)
            if request.properties and not has_time():
                return None
            result = self.lister.list_now(request, pattern)
            if result is None:
                return None
            table = None
            if tables is not None:
                table = tables.known(result.topics) if isinstance(result.topics, Listing) else None
                if table is None:
                    return None
            answer = self._finishing.now(request, pattern, self.lister.name, result)
        except Exception as error:  # noqa: BLE001  # whatever it is, the client gets an error
            self._finished.failed(request, error, started)
        if answer is not None:
            self.lister.gave(request.namespace, answer.topics_hash)
            answer.table = table
            self._finished.served(request, answer, started)
        return answer

    def answer_again(self, reusable: ReusableAnswer, asker: Asker, *, known: bool = False) -> Ended | None:
        """Count an answer of :meth:`answer_now` as given once more if it is still right, else return ``None``.

        ``known`` says that it is: no lister is asked.

        The returned function is to be called once the answer was sent, or could not be. The caller knows that the asker
        may list the namespace (:meth:`passes_now`).
        """
        if self.dispatcher.has_observers:
            return None  # observers get the asker of each listing
        started = time.perf_counter()
        try:
            is_valid = known or self._is_still_valid(reusable)
        except Exception:  # noqa: BLE001  # whatever it is, asking the long way tells it
            return None
        return self._finished.served_again(reusable, asker, self.lister.name, started) if is_valid else None

    def _is_still_valid(self, reusable: ReusableAnswer) -> bool:
        """Whether the lister still has an answer's listing, or the pattern matches the same topics in its new one."""
        question = reusable.question
        applied = question.pattern if reusable.filtered else None
        listing = self.lister.still_valid(question, applied, reusable.listing)
        if listing is not None:
            reusable.listing = weakref.ref(listing)  # so that only changes from now on are looked at
        return listing is not None

    @property
    def has_guards(self) -> bool:
        """Whether a client may be refused: there are rules, or gates."""
        return self.authorization.on or self.dispatcher.has_gates

    def passes_now(self, asker: Asker, namespace: NamespaceName) -> bool:
        """Whether the rules allow an asker to list a namespace, and no gate has to be asked."""
        if not self.has_guards:
            return True
        allowed = self.authorization.listed(asker, str(namespace)) is not False
        return allowed and not self.dispatcher.gates(namespace)

    def hides(self, asker: Asker, namespace: NamespaceName) -> bool:
        """Whether masks or rules may hide topics of a namespace from an asker."""
        return (
            self.dispatcher.masks(namespace) or self.authorization.listed(asker, str(namespace)) is not True
        )

    async def authorize(
        self,
        access: Access,
        deadline: float | None = None,
        steps: list[ChainStep] | None = None,
        *,
        rules: str | None = None,
        some: bool = False,
    ) -> None:
        """Ask the rules, then all gates, whether ``access`` is allowed, by ``deadline`` (else within the time of a
        listing).

        ``rules`` is the action for the rules, if it is not that of the gates; ``some``: about some topics of the
        namespace. Raises :exc:`ListingFailed`, with the cause ``DENIED`` unless a gate gives another, or ``TIME``. No
        gate is asked about an access that the rules deny.
        """
        self.ask_rules(access, rules, some=some)
        try:
            await self.ask_gates(access, deadline, steps)
        except ListingFailed as failure:
            if failure.cause is Cause.DENIED:
                self.metrics.denied(access.action, "gates")
            raise

    def ask_rules(self, access: Access, rules: str | None = None, *, some: bool = False) -> None:
        """Ask the rules alone; raises what :meth:`authorize` does."""
        try:
            self.authorization.check(access, rules, some=some)
        except ListingFailed as denied:
            self.metrics.denied(access.action, "rules")
            log_denial(access, denied)
            raise

    async def ask_gates(
        self, access: Access, deadline: float | None = None, steps: list[ChainStep] | None = None
    ) -> None:
        """Ask the gates alone; raises what :meth:`authorize` does."""
        if not self.dispatcher.gates(access.namespace):
            return
        async with self._budget.until(self._budget.deadline() if deadline is None else deadline):
            await self.dispatcher.authorize(access, steps)

    async def answer(
        self,
        request: ListingRequest,
        trace: Trace | None = None,
        *,
        topics_pattern: str | None = None,
        tables: ListingTables | None = None,
    ) -> Answer:
        """The answer to a request, within its deadline. Raises :exc:`ListingFailed`; never a shortened success.

        A ``topics_pattern`` is a pattern that the request does not have yet, and that takes a thread to compile.
        With ``tables``, an answer of their lister has the table of its listing.
        """
        tracing = self.sinks.tracing
        if tracing is None:
            return await self._answer_in_time(request, trace, topics_pattern, tables)
        with tracing.listing(
            question_attributes(QuestionText.of(request, topics_pattern), request.asker)
        ) as span:
            try:
                answer = await self._answer_in_time(request, trace, topics_pattern, tables)
            except ListingFailed as failure:
                span.note(**refused(failure))
                raise
            span.note(**answered(answer, answer.lister))
        answer.on_release += (span.written,)
        return answer

    async def _answer_in_time(
        self,
        request: ListingRequest,
        trace: Trace | None,
        topics_pattern: str | None,
        tables: ListingTables | None,
    ) -> Answer:
        if trace is None and self.has_sinks:
            trace = Trace()
        if self.has_guards:
            await self._authorize(request, trace, topics_pattern)
        if topics_pattern is not None:
            request = await self.with_pattern(request, topics_pattern, trace)
        started = time.perf_counter()
        try:
            async with self._budget.until(request.deadline):
                answer = await self._answer(request, trace, tables)
        except Exception as error:  # noqa: BLE001  # whatever it is, the client gets an error
            self._finished.failed(request, error, started, trace)
        self.lister.gave(request.namespace, answer.topics_hash)
        self._finished.served(request, answer, started, trace)
        return answer

    async def _authorize(
        self, request: ListingRequest, trace: Trace | None, topics_pattern: str | None
    ) -> None:
        started = time.perf_counter()
        access = Access("list", request.namespace, None, request.asker)
        try:
            await self.authorize(access, request.deadline, None if trace is None else trace.gates)
        except ListingFailed as failure:
            self._finished.refused(request, failure, started, trace, topics_pattern)
            raise

    async def _answer(
        self, request: ListingRequest, trace: Trace | None, tables: ListingTables | None
    ) -> Answer:
        await loop_turn().time()
        pattern = applied_pattern(request, self.options)
        if not has_hash(request):
            request = without_hash(request)
            _check_start(request)
        question = (request.mode, request.topics_pattern, frozenset(request.properties.items()))
        unknown = unknown_size(self.permits) if self.dispatcher.lists(request.namespace) else 0
        sizes = sizes_of(self.lister, request.namespace, request.asker)
        estimate = self.estimates.of(sizes, (sizes, *question), unknown)
        held = HeldPermit(self.permits, estimate, request.asker.connection)
        services = RequestServices(request, "", held, _everything, None, len)
        services.mark = lambda: self.changes.mark(request.namespace)
        progress = ListingInProgress(
            copied(request, reserve_bytes=held.reserve, services=services),
            pattern,
            held,
            trace,
            topics=self.authorization.filter(request.asker, str(request.namespace)),
            tables=tables,
        )
        try:
            async with held:
                if trace is not None:
                    trace.permits["estimate"] = held.count
                with stage("list"):
                    accepted = await self._listers.list(progress)
                if tables is not None:
                    # It may have been listed again for its table, and then rules may have come before its topics.
                    topics = self.authorization.filter(request.asker, str(request.namespace))
                    progress = copied(progress, topics=topics)
                if request.page is not None:
                    with stage("page"):
                        return await self._paging.page(progress, accepted, self._listers.list)
                return await self._finishing.finish(progress, accepted)
        finally:
            if trace is not None:
                trace.waited = held.waited


def _everything() -> frozenset[str]:
    return EVERYTHING


def _check_start(request: ListingRequest) -> None:
    """Check that a page begins in the listed namespace."""
    start = None if request.page is None else request.page.start
    if start is not None and TopicName.parse(start.base).namespace != request.namespace:
        raise ListingFailed(
            f"A page of {request.namespace} cannot begin at {start.name!r:.250}",
            cause=Cause.BAD_REQUEST,
            reason="bad_request",
        )


def _bad_pattern(error: InvalidPattern) -> ListingFailed:
    return ListingFailed(str(error), cause=Cause.PATTERN, reason="bad_pattern")


def _checked(pairs: Sequence[tuple[str, str]], limits: LimitsSettings) -> Properties:
    if len(pairs) > limits.properties:
        raise _too_many(f"{len(pairs)} properties", limits.properties, "limits.properties")
    size = sum(len(key.encode()) + len(value.encode()) for key, value in pairs)
    if size > limits.property_bytes:
        raise _too_many(f"properties of {size} bytes", limits.property_bytes, "limits.property_bytes")
    return Properties(pairs)


def _too_many(what: str, most: int, setting: str) -> ListingFailed:
    return ListingFailed(
        f"{what} in one request, at most {most} are allowed ({setting})",
        cause=Cause.BAD_REQUEST,
        reason="bad_request",
    )
