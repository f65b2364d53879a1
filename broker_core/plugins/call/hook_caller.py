"""Calls of one hook of one plugin, in a way that cannot harm the broker.

docs/explanation/promises.md#plugins-cannot-hurt-the-broker

Theory of operation. :class:`~broker_core.plugins.call.plugin_runner.PluginRunner` runs the hook, contained and within
its deadline. This module handles the result: the hook's circuit breaker admits each call, the call is counted, and
a failure becomes a :class:`PluginFailed`. An error that the broker itself raised to the hook (``request.reserve()``) is
passed on as it is. A plugin with too many abandoned calls is not called until some of them have ended.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final, TypeAlias

import structlog

from broker_core.counted import counted
from broker_core.errors import Cause, ListingFailed, TooManyRequests
from broker_core.plugin_api import ERROR, HOOK_FACTS
from broker_core.plugins.call.circuit_breaker import BreakerState, CallPermission, CircuitBreaker
from broker_core.plugins.call.event_loop_time import LoopTime
from broker_core.plugins.call.plugin_runner import Deadline, NotInTime, PluginRunner
from broker_core.plugins.call.plugin_threads import RaisedByPlugin, ThreadsFull
from broker_core.plugins.failures import PluginFailed
from broker_core.plugins.load.hook_implementations import Implementation
from broker_core.plugins.load.registry import LoadedPlugin
from broker_core.plugins.raised_exceptions import failure_for_client, in_words, is_a, kind, text, trace
from broker_core.tracing import stage

__all__ = ["ABANDONED_TASKS", "CallObserver", "HookCaller", "HookStatistics"]

log = structlog.get_logger(__name__)

#: Abandoned tasks that one plugin may have; with more, it is not called.
ABANDONED_TASKS: Final = 100
#: At most one line of the log for each hook in so many seconds.
_LOG_EVERY: Final = 1.0

#: Called after each call: plugin, hook without its prefix, answer, seconds (``None`` if it was not called).
CallObserver: TypeAlias = Callable[[str, str, str, float | None], None]
#: See :meth:`HookCaller.calling`.
Check: TypeAlias = Callable[[Any, Any], tuple[Any, str]]


class HookCaller:
    """Caller of any one hook of one plugin; all calls share its breaker and its statistics.

    All hooks of a plugin share its ``runner``: the threads, and the limit of abandoned calls. ``implementation``
    is called in place of the plugin's own for the hook, and ``part`` says which of several that is.
    """

    def __init__(
        self,
        plugin: LoadedPlugin,
        hook: str,
        runner: PluginRunner,
        *,
        on_call: CallObserver | None = None,
        implementation: Implementation | None = None,
        part: str = "",
    ) -> None:
        self.plugin = plugin
        self.name = plugin.name
        self.hook = " ".join(filter(None, (hook.removeprefix("broker_core_"), part)))
        self.runner = runner
        self.statistics = HookStatistics()
        self.loop_time = LoopTime(self.name, self.hook)
        self.breaker = CircuitBreaker()
        self._implementation = implementation or plugin.implementations[hook]
        self._fails_alone = HOOK_FACTS[hook].fails_alone
        self._secret = HOOK_FACTS[hook].secret
        self._on_call = on_call
        #: Makes the object that the plugin's function gets in place of the question; for tests.
        self.shown: Callable[[Any], Any] | None = None
        self._next_log = 0.0
        self._not_logged = 0
        #: Whether the last failure was that of a cluster behind this server.
        self._is_of_cluster = False

    async def call(self, question: Any, check: Check, **values: object) -> tuple[Any, str]:
        """The hook's answer, and the word for it; raises as :meth:`calling`."""
        async with self.calling(question, check, **values) as answered:
            return answered

    @asynccontextmanager
    async def calling(self, question: Any, check: Check, **values: object) -> AsyncGenerator[tuple[Any, str]]:
        """A block with the hook's answer, and the word for it, in which the answer is accepted, or found to be wrong.

        ``question`` is the object that the hook is called about (a request, say). The plugin's function gets its
        arguments by name: from ``values``, the question itself as ``request``, and otherwise the question's attribute
        of that name. While the plugin waits for the broker in a function of the question (see its method ``pausing``),
        its clock stands still.

        ``check`` gets the answer and the question; it returns the answer and its word, and raises :exc:`TypeError` or
        :exc:`ValueError`, with a message of its own, for an invalid answer. The block may take its time, which does not
        count for the plugin, and raises :exc:`~broker_core.errors.ListingFailed` for a wrong answer. Raises
        :exc:`PluginFailed`, or an error that the broker itself raised to the plugin and that it let pass (the
        :exc:`~broker_core.errors.TooManyRequests` of ``request.reserve()``, the failure of ``request.rest()``), or
        the :exc:`~broker_core.errors.TooManyRequests` of the block.
        """
        loop = asyncio.get_running_loop()
        started = loop.time()
        admission = self.breaker.admit(started)
        if admission is CallPermission.REFUSED:
            raise self._not_called(
                "plugin_breaker",
                f"is not asked for now: it failed {counted(self.breaker.failures, 'time')} in a row",
            )
        deadline = Deadline(loop, self.plugin.options.deadline)
        try:
            with stage("plugin", plugin=self.name, hook=self.hook) as span:
                given = await self._answer(deadline, question, values)
                answer, word = self._checked(check, given, question)
                span.note(answer=word)
            seconds = loop.time() - started - deadline.stood_still
            with self._accepting():
                yield answer, word
        except PluginFailed as failure:
            self._failed(failure, admission, started + deadline.stood_still, loop.time())
            raise
        except BaseException:  # the request is gone, or the broker itself refused it permits
            self.breaker.undecided(admission)
            raise
        if self.breaker.state is not BreakerState.CLOSED:
            log.info("plugin recovered", plugin=self.name, hook=self.hook)
        self.breaker.succeeded(admission)
        self.statistics.answered(word, seconds)
        if self._on_call is not None:
            self._on_call(self.name, self.hook, word, seconds)

    async def uncounted(self, question: Any, check: Check, **values: object) -> Any:
        """The checked answer of a call that neither the breaker nor the statistics count; raises as :meth:`call`."""
        deadline = Deadline(asyncio.get_running_loop(), self.plugin.options.deadline)
        return self._checked(check, await self._answer(deadline, question, values), question)[0]

    def describe(self) -> dict[str, Any]:
        """Plain values of the state of this hook."""
        return {
            "breaker": self.breaker.state.name.lower(),
            "breaker_opened": self.breaker.opened,
            **self.statistics.describe(),
            "loop": self.loop_time.describe(),
        }

    async def _answer(self, deadline: Deadline, question: Any, values: Mapping[str, object]) -> Any:
        """The result of the plugin's function within the deadline."""
        left = len(self.runner.abandoned)
        if left >= ABANDONED_TASKS:
            raise PluginFailed(
                self.name,
                f"is not asked for now: {left} of its calls are past their deadline and still run",
                reason="plugin_threads",
            )
        if hasattr(question, "pausing"):
            question = question.pausing(deadline.paused)
        if self.shown is not None:
            question = self.shown(question)
        given = {
            name: values[name]
            if name in values
            else question
            if name == "request"
            else getattr(question, name)
            for name in self._implementation.arguments
        }
        try:
            return await self.runner.run(self._implementation, given, deadline, self.loop_time)
        except NotInTime:
            late = f"did not answer within {deadline.seconds:g} s"
            if deadline.overrun:
                late += (
                    ", and held the event loop: its hook should be a plain function, which runs in a thread"
                )
            raise PluginFailed(self.name, late, reason="plugin_deadline") from None
        except ThreadsFull as full:
            raise PluginFailed(self.name, f"has no free thread: {full}", reason="plugin_threads") from full
        except RaisedByPlugin as carried:
            error = carried.error
        of_broker = deadline.raised(error)
        try:
            if self._secret:
                raise self._raised(error) from error
            if of_broker is not None and failure_for_client(of_broker) is not None:
                raise of_broker
            public = failure_for_client(error)
            if public is not None and is_a(error, TooManyRequests):
                # As the broker's own; with a reason of the broker, since reasons are labels of metrics.
                raise TooManyRequests(public.message, reason="plugin_error") from error
            raise self._raised(error) from error
        finally:
            del error, of_broker  # in its own traceback, it would keep all that the call had

    def _checked(self, check: Check, answer: Any, question: Any) -> tuple[Any, str]:
        try:
            return check(answer, question)
        except BaseException as error:
            # Any attribute of a dishonest answer may raise anything.
            wrong = text(error) if is_a(error, (TypeError, ValueError)) else in_words(error)
            raise PluginFailed(self.name, f"gave a wrong answer: {wrong}", reason="plugin_answer") from error

    @contextmanager
    def _accepting(self) -> Iterator[None]:
        """Turn an error in the plugin's answer into a failure of the plugin."""
        try:
            yield
        except TooManyRequests:
            raise
        except ListingFailed as error:
            raise PluginFailed(
                self.name, error.message, reason="plugin_topics", cause=error.cause, code=error.code
            ) from error
        except Exception as error:
            # Its fields were set without any check.
            raise PluginFailed(
                self.name,
                f"gave an answer that cannot be read: {in_words(error)}",
                reason="plugin_answer",
            ) from error

    def _raised(self, error: BaseException) -> PluginFailed:
        if self._secret:
            return PluginFailed(self.name, f"failed: {kind(error)}", reason="plugin_error")
        public = failure_for_client(error)
        if public is not None:  # the plugin chose the message for the client
            return PluginFailed(
                self.name,
                f"failed: {public.message}",
                reason="plugin_error",
                cause=public.cause,
                code=public.code,
                counts=public.counts,
            )
        return PluginFailed(
            self.name,
            f"failed: {kind(error)}",
            reason="plugin_error",
            detail=f"plugin {self.name!r} failed: {in_words(error)}",
        )

    def _not_called(self, reason: str, message: str) -> PluginFailed:
        cause = Cause.UPSTREAM if self._is_of_cluster else Cause.PLUGIN
        failure = PluginFailed(self.name, message, reason=reason, cause=cause)
        self.statistics.failed(reason, failure.detail, None)
        if self._on_call is not None:
            self._on_call(self.name, self.hook, ERROR, None)
        return failure

    def _failed(self, failure: PluginFailed, admission: CallPermission, started: float, now: float) -> None:
        opened = self.breaker.opened
        self._is_of_cluster = failure.cause is Cause.UPSTREAM
        # An error of a gate closes it for that request alone: else any client could lock all others out by a request
        # that it fails on. A gate that hangs, or has no free thread, gets the same breaker as other hooks.
        of_question = self._fails_alone and failure.reason in {"plugin_error", "plugin_answer"}
        if failure.counts and not of_question:
            self.breaker.failed(admission, now)
        else:
            self.breaker.undecided(admission)
        self.statistics.failed(failure.reason, failure.detail, now - started)
        if self._on_call is not None:
            self._on_call(self.name, self.hook, ERROR, now - started)
        if now < self._next_log and self.breaker.opened == opened:
            self._not_logged += 1
            return
        log.warning(
            "plugin failed",
            plugin=self.name,
            hook=self.hook,
            error=failure.detail,
            breaker=self.breaker.state.name.lower(),
            not_logged=self._not_logged,
            **_traceback(failure, texts=not self._secret),
        )
        self._next_log = now + _LOG_EVERY
        self._not_logged = 0


def _traceback(failure: PluginFailed, *, texts: bool) -> dict[str, str]:
    """The traceback of a failure as a field of the log, for the author of a plugin.

    It is text, since renderers of exceptions may take a good part of a second on the event loop, and show the values of
    local variables, which may be secrets. A :exc:`~broker_core.errors.ListingFailed` has none: the plugin raised it on
    purpose, with a message.
    """
    cause = failure.__cause__
    if failure.reason != "plugin_error" or cause is None:
        return {}
    if texts and failure_for_client(cause) is not None:
        return {}
    return {"exception": trace(cause, texts=texts)}


#: Latencies are of the last so many calls: operators need the current state.
RECENT: Final = 256


class HookStatistics:
    """The calls of one hook of one plugin."""

    __slots__ = ("_recent", "answers", "failures", "last_error", "passed_over", "stale")

    def __init__(self) -> None:
        self.answers: Counter[str] = Counter()
        self.failures: Counter[str] = Counter()  # by reason
        self.passed_over = 0  # failures after which the next plugin was asked
        self.stale = 0  # failures that a former answer replaced
        self.last_error: str | None = None
        self._recent: deque[float] = deque(maxlen=RECENT)

    def answered(self, answer: str, seconds: float) -> None:
        self.answers[answer] += 1
        self._recent.append(seconds)

    def failed(self, reason: str, error: str, seconds: float | None) -> None:
        """Count a failure; ``seconds`` is ``None`` if the plugin was not called at all."""
        self.answers["error"] += 1
        self.failures[reason] += 1
        self.last_error = error
        if seconds is not None:
            self._recent.append(seconds)

    def percentile(self, percent: float) -> float | None:
        """A percentile of the seconds of the last calls; ``None`` before the first."""
        if not self._recent:
            return None
        ordered = sorted(self._recent)
        return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]

    def describe(self) -> dict[str, Any]:
        """Plain values; latencies in milliseconds."""
        return {
            "calls": self.answers.total(),
            "answers": dict(self.answers),
            "failures": dict(self.failures),
            "passed_over": self.passed_over,
            "stale": self.stale,
            "last_error": self.last_error,
            "p50_ms": _milliseconds(self.percentile(50)),
            "p99_ms": _milliseconds(self.percentile(99)),
        }


def _milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds * 1000, 3)
