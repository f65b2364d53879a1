"""Reports of finished listings: counted by metrics and by question, sent to observers, written to the access log.

Questions are counted in bounded memory and without secrets, so that the most frequent ones can be shown. Denials by
rules are logged here too: one line for each, or one for all of a request, which may name many topics.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import partial
from sys import getsizeof
from typing import Any, Final, NoReturn, TypeAlias

import structlog

from broker_core.access import Access, Asker
from broker_core.errors import BrokerCoreError, Cause, ListingFailed
from broker_core.metrics import Metrics
from broker_core.names import Mode
from broker_core.pipeline.answer import (
    Answer,
    QuestionKey,
    QuestionText,
    QuestionWarning,
    ReusableAnswer,
    Trace,
)
from broker_core.pipeline.reports.event_sinks import (
    AccessLines,
    EventSinks,
    answered,
    question_attributes,
    refused,
)
from broker_core.pipeline.request.unsupported_patterns import PipelineOptions
from broker_core.plugin_api import ListingOutcome, ListingRequest
from broker_core.plugins import Dispatcher

__all__ = [
    "Ended",
    "FinishedListings",
    "QuestionCount",
    "QuestionCounter",
    "log_denial",
    "one_line_of_denials",
]

#: Called once an answer was sent, or with why it could not be.
Ended: TypeAlias = Callable[[ListingFailed | None], None]

#: The most characters of an error that observers get.
_LONGEST_MESSAGE: Final = 4096

#: The kinds of warnings that are counted and logged.
_COUNTED_KINDS: Final = ("pattern", "properties")

#: The beginning of the ``User-Agent`` of every browser, and of no other client.
_BROWSER: Final = "Mozilla/"

_NONE: Final[Mapping[str, str]] = {}

_log = structlog.get_logger(__name__)


class FinishedListings:
    """Reports each finished listing to metrics, observers, traces and the access log; one for a pipeline. Times are
    of :func:`time.perf_counter`.
    """

    def __init__(
        self,
        metrics: Metrics,
        dispatcher: Dispatcher,
        options: PipelineOptions,
        sinks: EventSinks,
        warnings: Callable[..., tuple[QuestionWarning, ...]],
    ) -> None:
        self._warnings = warnings
        self._metrics = metrics
        self._dispatcher = dispatcher
        self._options = options
        #: How often each question was asked.
        self.questions = QuestionCounter()
        #: Called with the kind of a warning.
        self._warned = metrics.counter(
            "listing_warnings",
            "Questions that select otherwise than they seem: by a pattern that can match no topic of the namespace, by "
            "properties that nothing selects by.",
            "kind",
            known=_COUNTED_KINDS,
        )
        access_log = sinks.access_log
        self._tracing = sinks.tracing
        self._lines = None if access_log is None else AccessLines(access_log)
        if access_log is not None:
            metrics.read_counter(
                "access_log_dropped",
                "Lines of the access log that were not written, by reason.",
                access_log.dropped.counts,
                "reason",
            )

    def served(
        self,
        request: ListingRequest,
        answer: Answer,
        started: float,
        trace: Trace | None = None,
    ) -> None:
        """Report that a request has an answer, or that its client's hash holds. A quick answer has no ``trace``."""
        seconds = time.perf_counter() - started
        answer.warnings = self._warnings(request, filtered=answer.filtered, topics=answer.topics)
        if self._lines is not None:
            times = _times(trace, seconds)
            answer.on_release += (
                partial(self._lines.ended, request, request.asker, answer, answer.lister, *times),
            )
        selection = answer.selection
        outcome, topics = ("unchanged", 0) if selection is None else ("served", len(selection))
        self._metrics.listing(outcome, answer.plan, topics, seconds)
        if answer.warnings:
            self._warn(request.asker, request, answer.warnings)
        keys = self._options.selecting_keys
        properties = (
            {key: value for key, value in request.properties.items() if key in keys} if keys else _NONE
        )
        self._count(request.asker, request, properties, seconds, trace)
        if self._dispatcher.has_observers:
            event = ListingOutcome(
                outcome,
                answer.lister,
                topics,
                answer.filtered,
                answer.topics_hash,
                seconds,
                stale_seconds=answer.stale,
            )
            self._notify_observers(request, event)
        if self._tracing is not None and trace is None:
            values = question_attributes(QuestionText.of(request), request.asker) | answered(
                answer, answer.lister
            )
            self._tracing.listed(values, seconds)

    def served_again(self, reusable: ReusableAnswer, asker: Asker, lister: str, started: float) -> Ended:
        """Report that a question has its earlier answer of ``lister`` again; there are no observers.

        The returned function is called once the answer was sent, or could not be.
        """
        seconds = time.perf_counter() - started
        question = reusable.question
        self._metrics.listing(
            "served" if reusable.changed else "unchanged",
            reusable.plan,
            reusable.topics if reusable.changed else 0,
            seconds,
        )
        if reusable.warnings is None:
            reusable.warnings = self._warnings(question, filtered=reusable.filtered, topics=reusable.topics)
        if reusable.warnings:
            self._warn(asker, question, reusable.warnings)
        is_browser = asker.client_version.startswith(_BROWSER)
        if not is_browser and not self.questions.again(reusable.key, seconds):
            self._count(asker, question, _NONE, seconds)
        if self._tracing is not None:
            values = question_attributes(QuestionText.of(question), asker) | answered(reusable, lister)
            self._tracing.listed(values, seconds)
        if self._lines is None:
            return _nothing
        return partial(self._lines.ended, question, asker, reusable, lister, 0.0, seconds)

    def _count(
        self,
        asker: Asker,
        question: ListingRequest,
        properties: Mapping[str, str],
        seconds: float,
        trace: Trace | None = None,
    ) -> None:
        """Count a question of a client: not one that is explained in its place, nor those of a browser, which asks at
        each key, and would crowd out the others.
        """
        explains = trace is not None and trace.explains
        if not explains and not asker.client_version.startswith(_BROWSER):
            self.questions.record(
                str(question.namespace), question.mode, question.topics_pattern, properties, seconds
            )

    def _warn(self, asker: Asker, request: ListingRequest, warnings: tuple[QuestionWarning, ...]) -> None:
        """Count and log what a client may not have meant; a pattern that is not applied is counted by its plan."""
        for warning in warnings:
            if warning.kind in _COUNTED_KINDS:
                self._warned(warning.kind)
                _log.info(
                    "a question selects otherwise than it seems",
                    reason=warning.kind,
                    peer=asker.remote_address,
                    role=asker.role,
                    namespace=str(request.namespace),
                    warning=warning.text,
                )

    def refused(
        self,
        request: ListingRequest,
        failure: ListingFailed,
        started: float,
        trace: Trace | None = None,
        topics_pattern: str | None = None,
    ) -> None:
        """Report that a request has no answer; ``topics_pattern`` is a pattern that it does not have yet."""
        seconds = time.perf_counter() - started
        if self._dispatcher.has_observers:
            message = failure.message[:_LONGEST_MESSAGE]
            event = ListingOutcome(
                "error", failure.plugin, 0, False, None, seconds, message, cause=failure.cause
            )
            self._notify_observers(request, event)
        question = QuestionText.of(request, topics_pattern)
        times = _times(trace, seconds)
        self._refused(question, request.asker, failure, seconds, times, traced=trace is not None)

    def refused_at_once(self, question: QuestionText, asker: Asker, failure: ListingFailed) -> None:
        """Report a question that was refused before it was a request; no effect if the pipeline has refused it."""
        if not failure.reported:
            self._refused(question, asker, failure, 0.0, (0.0, 0.0), traced=False)

    def _refused(
        self,
        question: QuestionText,
        asker: Asker,
        failure: ListingFailed,
        seconds: float,
        times: tuple[float, float],
        *,
        traced: bool,
    ) -> None:
        failure.reported = True
        self._metrics.listing_refused(failure.reason, seconds)
        if self._lines is not None:
            self._lines.refused(question, asker, failure, *times)
        if self._tracing is not None and not traced:
            self._tracing.listed(
                question_attributes(question, asker) | refused(failure), seconds, failure.reason
            )

    def failed(
        self, request: ListingRequest, error: Exception, started: float, trace: Trace | None = None
    ) -> NoReturn:
        """Report a request that raised ``error``, and raise the failure that the client gets."""
        failure = _failure(request, error)
        if failure.reason == "denied":
            self._denied_by_brokers(request, failure)
        self.refused(request, failure, started, trace)
        try:
            raise failure from error.__cause__
        finally:
            del failure, error  # in its own traceback, it would keep all that this request had

    def _denied_by_brokers(self, request: ListingRequest, failure: ListingFailed) -> None:
        asker = request.asker
        self._metrics.denied("list", "brokers")
        _log.info(
            "denied by the brokers",
            peer=asker.remote_address,
            role=asker.role,
            action="list",
            namespace=str(request.namespace),
            message=failure.message,
        )

    def _notify_observers(self, request: ListingRequest, outcome: ListingOutcome) -> None:
        """Notify the observers, which may have many requests waiting: of a pattern of megabytes only the beginning."""
        if request.pattern is not None and self._options.is_long(request):
            request = replace(request, pattern=request.pattern.shortened(self._options.patterns.max_length))
        self._dispatcher.observers.enqueue(request, outcome)


def _nothing(_unsent: ListingFailed | None = None) -> None:
    """Report nothing."""


def _times(trace: Trace | None, seconds: float) -> tuple[float, float]:
    """The seconds that a request waited for permits, and those that it took in all, as far as known."""
    return (0.0, seconds) if trace is None else (trace.waited, time.perf_counter() - trace.began)


def _failure(request: ListingRequest, error: Exception) -> ListingFailed:
    """The error for the client; the log has the details."""
    if isinstance(error, ListingFailed):
        return error
    if isinstance(error, BrokerCoreError):
        failure = ListingFailed(str(error), cause=Cause.INTERNAL)
    else:
        # Not foreseen, so the log has all that is known.
        _log.error("listing failed", namespace=str(request.namespace), mode=request.mode.name, exc_info=error)
        failure = ListingFailed(
            f"Internal error: {type(error).__name__}", cause=Cause.INTERNAL, reason="internal"
        )
    failure.__cause__ = error
    return failure


@dataclass(frozen=True, slots=True)
class QuestionCount:
    """One question with how often it was asked (at most ``error`` too high) and the seconds its answers took.

    ``last_asked`` is in seconds since 1970.
    """

    namespace: str
    mode: Mode
    topics_pattern: str | None
    properties: tuple[tuple[str, str], ...]
    count: int
    error: int
    seconds: float
    last_asked: float


class QuestionCounter:
    """Counts questions; holds at most ``capacity`` of them, none with a text over ``max_text`` characters.

    ``max_bytes`` bounds the memory of all their text, since clients choose it: if questions are long, there is room for
    fewer of them. Each takes some 400 bytes besides. ``clock`` gives seconds since 1970.

    Counts are those of the Space-Saving sketch (Metwally et al., 2005), emptied in batches: with room for ``n``
    questions, every question asked more than ``total / n`` times is in it, and ``error`` bounds by how much a count may
    be too high. Askers are not recorded, and of the properties only the keys that select topics.
    """

    def __init__(
        self,
        capacity: int = 4096,
        *,
        max_text: int = 1024,
        max_bytes: int = 1024 * 1024,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.capacity = capacity
        self.max_text = max_text
        self.max_bytes = max_bytes
        self._clock = clock
        self._counts: dict[QuestionKey, list[float]] = {}  # count, error, seconds, last asked
        self._floor = 0  # the most that a question which is not here may have been counted before
        self._bytes = 0

    def record(
        self,
        namespace: str,
        mode: Mode,
        topics_pattern: str | None,
        properties: Mapping[str, str],
        seconds: float,
    ) -> None:
        """Count one answer. ``properties`` are only the ones that select."""
        pairs = tuple(sorted(properties.items())) if properties else ()
        key = (namespace, mode, topics_pattern, pairs)
        if self.again(key, seconds):
            return
        text = len(topics_pattern or "") + sum(len(name) + len(value) for name, value in pairs)
        if text > self.max_text:
            return
        size = _text_bytes(key)
        if size > self.max_bytes:
            return
        while self._counts and (len(self._counts) >= self.capacity or self._bytes + size > self.max_bytes):
            self._make_room()
        self._counts[key] = [self._floor + 1, self._floor, seconds, self._clock()]
        self._bytes += size

    def again(self, key: QuestionKey, seconds: float) -> bool:
        """Count one more answer to a question that is here; false if it is not. It is called for each watcher."""
        entry = self._counts.get(key)
        if entry is None:
            return False
        entry[0] += 1
        entry[2] += seconds
        entry[3] = self._clock()
        return True

    def _make_room(self) -> None:
        """Drop the least frequent quarter at once, so that a new question costs a constant on average."""
        ordered = sorted(self._counts.items(), key=lambda item: item[1][0])
        leaving = ordered[: max(1, len(ordered) // 4)]
        self._floor = int(leaving[-1][1][0])
        for key, _ in leaving:
            del self._counts[key]
            self._bytes -= _text_bytes(key)

    def most_frequent(self, limit: int | None = None) -> list[QuestionCount]:
        """The questions, the most frequent first."""
        ordered = sorted(self._counts.items(), key=lambda item: (-item[1][0], -item[1][2]))[:limit]
        return [
            QuestionCount(*key, int(count), int(error), seconds, last_asked)
            for key, (count, error, seconds, last_asked) in ordered
        ]


def _text_bytes(key: QuestionKey) -> int:
    """The memory of a key's strings; a character takes one to four bytes of it."""
    namespace, _, pattern, pairs = key
    texts = [namespace, *(text for pair in pairs for text in pair)]
    return sum(getsizeof(text) for text in texts) + (0 if pattern is None else getsizeof(pattern))


#: The topics that a line about denials names.
_DENIED_NAMED: Final = 5


class _Denials:
    """The denials of one request: the first with its message, and the names of some."""

    def __init__(self) -> None:
        self.is_over = False
        self._count = 0
        self._topics: list[str] = []
        self._first: dict[str, Any] = {}

    def add(self, fields: dict[str, Any], topic: str | None) -> None:
        self._first = self._first or fields
        self._count += 1
        if topic is not None and len(self._topics) < _DENIED_NAMED and topic not in self._topics:
            self._topics.append(topic)

    def log(self) -> None:
        self.is_over = True
        more = {"denials": self._count, "topics": self._topics} if self._count > 1 else {}
        if self._first:
            _log.info("denied by the rules", **self._first, **more)


_REQUEST: Final[ContextVar[_Denials | None]] = ContextVar("broker_core_denials", default=None)


@contextmanager
def one_line_of_denials() -> Iterator[None]:
    """Log the denials of a request as one line once it has its answer, also those within another of these."""
    if _REQUEST.get() is not None:
        yield
        return
    denials = _Denials()
    token = _REQUEST.set(denials)
    try:
        yield
    finally:
        _REQUEST.reset(token)
        denials.log()


def log_denial(access: Access, denied: ListingFailed) -> None:
    """Log that the rules denied an access."""
    fields = {"peer": access.asker.remote_address, "message": denied.message}
    denials = _REQUEST.get()
    if denials is None or denials.is_over:  # of a task that has outlived its request
        denials = _Denials()
        denials.add(fields, None)
        denials.log()
    else:
        denials.add(fields, None if access.topic is None else str(access.topic))
