"""One hook of one plugin, asked in a way that cannot hurt the broker (promise 3 of the design).

Theory of operation. A call is work of its own: a task for an ``async`` hook, a thread of the plugin's for a plain one.
The caller waits for it, up to the deadline; then it cancels the work and goes on, whether or not the work ends. Work
that goes on after its deadline is *abandoned*: it is kept and counted; beyond a limit the plugin is not called any
more until some of it has ended. Everything that the work raises becomes a :class:`PluginFailed`, but what it got from
``request.reserve()``: that is the broker's own answer. An ``async`` hook that does not give the event loop back cannot
be interrupted; the time is measured, and what it answers beyond its deadline is not taken.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final, TypeAlias

import structlog

from broker_core.errors import ListingFailed, TooManyRequests
from broker_core.listing_request import ListingRequest
from broker_core.plugins.abandoned import Abandoned
from broker_core.plugins.breaker import Admission, BreakerState, CircuitBreaker
from broker_core.plugins.deadline import Deadline
from broker_core.plugins.failures import PluginFailed
from broker_core.plugins.loop_time import LoopTime, Stepwise
from broker_core.plugins.raised import in_words, is_a, is_awaitable, kind, said, text, trace
from broker_core.plugins.registry import LoadedPlugin
from broker_core.plugins.statistics import HookStatistics
from broker_core.plugins.threads import PluginThreads, RaisedByPlugin, ThreadsFull

__all__ = ["ABANDONED_TASKS", "CallObserver", "HookCaller", "contained", "plain"]

log = structlog.get_logger(__name__)

#: Tasks past their deadline that one plugin may leave behind; more, and it is not called.
ABANDONED_TASKS: Final = 100
#: At most one line of the log for each hook in so many seconds.
_LOG_EVERY: Final = 1.0

#: Told of each call: plugin, hook without its prefix, answer, seconds (``None`` where it was not called).
CallObserver: TypeAlias = Callable[[str, str, str, float | None], None]
#: See :meth:`HookCaller.call`.
Check: TypeAlias = Callable[[Any, ListingRequest], tuple[Any, str]]
Accept: TypeAlias = Callable[[Any], Awaitable[Any]]

_ARGUMENTS: Final[Mapping[str, Callable[[ListingRequest], object]]] = {
    "request": lambda request: request,
    "namespace": lambda request: request.namespace,
    "mode": lambda request: request.mode,
    "topics_pattern": lambda request: request.topics_pattern,
    "properties": lambda request: request.properties,
}


async def contained(
    start: Callable[[], Awaitable[Any]], loop_time: LoopTime, on_step: Callable[[float], None] | None = None
) -> Any:
    """The answer of an ``async`` function of a plugin, as the body of a task that cannot end the event loop.

    The steps that it takes on the loop are counted in ``loop_time``; ``on_step`` is told the seconds of each.
    """
    try:
        return await Stepwise(start, loop_time, on_step)
    except asyncio.CancelledError:
        raise
    except BaseException as error:  # noqa: BLE001 - SystemExit would end the loop
        raise RaisedByPlugin(error) from None


def plain(error: BaseException) -> BaseException:
    """What the plugin itself raised, without what carried it to the loop."""
    return error.error if isinstance(error, RaisedByPlugin) else error


class HookCaller:
    """Calls one hook of one plugin; all calls share its breaker, its statistics and the plugin's threads."""

    def __init__(
        self,
        plugin: LoadedPlugin,
        hook: str,
        threads: PluginThreads,
        abandoned: Abandoned,
        *,
        on_call: CallObserver | None = None,
        breaker: CircuitBreaker | None = None,
    ) -> None:
        self.plugin = plugin
        self.name = plugin.name
        self.hook = hook.removeprefix("broker_core_")
        self.statistics = HookStatistics()
        self.loop_time = LoopTime(self.name, self.hook)
        self.breaker = breaker or CircuitBreaker()
        self._implementation = plugin.implementations[hook]
        self._getters = [
            (name, _ARGUMENTS[name]) for name in self._implementation.arguments if name in _ARGUMENTS
        ]
        self._extra = [name for name in self._implementation.arguments if name not in _ARGUMENTS]
        self._deadline = plugin.options.deadline
        self._threads = threads
        self._on_call = on_call
        self._left = abandoned
        self._next_log = 0.0
        self._not_logged = 0

    async def call(
        self, request: ListingRequest, check: Check, accept: Accept | None = None, **extra: object
    ) -> tuple[Any, str, Any]:
        """The hook's answer, the word for it, and what ``accept`` makes of an answer that is not ``None``.

        ``check`` gets the answer and the request; it gives back the answer and its word, and raises :exc:`TypeError` or
        :exc:`ValueError`, in words of its own, for what is no answer. ``accept`` may take its time, which is not the
        plugin's, and raises :exc:`~broker_core.errors.ListingFailed` for an answer that is wrong. Raises
        :exc:`PluginFailed`, or the :exc:`~broker_core.errors.TooManyRequests` of ``request.reserve()`` or of
        ``accept``.
        """
        loop = asyncio.get_running_loop()
        started = loop.time()
        admission = self.breaker.admit(started)
        if admission is Admission.REFUSED:
            raise self._not_called(
                "plugin_breaker", f"is not asked for now: it failed {self.breaker.failures} times in a row"
            )
        deadline = Deadline(loop, self._deadline)
        try:
            answer = await self._answer(loop, deadline, request, extra)
            try:
                answer, word = check(answer, request)
            except BaseException as error:
                # Of an object that is no honest answer, any part may raise anything.
                wrong = text(error) if is_a(error, (TypeError, ValueError)) else in_words(error)
                raise PluginFailed(
                    self.name, f"gave a wrong answer: {wrong}", reason="plugin_answer"
                ) from error
            seconds = loop.time() - started
            accepted = None if accept is None or answer is None else await self._accepted(accept, answer)
        except PluginFailed as failure:
            self._failed(failure, admission, started, loop.time())
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
        return answer, word, accepted

    def describe(self) -> dict[str, Any]:
        """Plain values of the state of this hook."""
        return {
            "breaker": self.breaker.state.name.lower(),
            "breaker_opened": self.breaker.opened,
            **self.statistics.describe(),
            "loop": self.loop_time.describe(),
        }

    async def _answer(
        self,
        loop: asyncio.AbstractEventLoop,
        deadline: Deadline,
        request: ListingRequest,
        extra: Mapping[str, object],
    ) -> Any:
        """The result of the work, within the deadline."""
        if len(self._left) >= ABANDONED_TASKS:
            raise PluginFailed(
                self.name,
                f"is not asked for now: {len(self._left)} of its calls are past their deadline and still run",
                reason="plugin_threads",
            )
        asked = deadline.request(request)
        values = {name: get(asked) for name, get in self._getters}
        for name in self._extra:
            values[name] = extra[name]
        function = partial(self._implementation.function, **values)
        work: asyncio.Future[Any]
        if self._implementation.is_async:
            work = loop.create_task(contained(function, self.loop_time, deadline.held_loop))
        else:
            try:
                work = self._threads.submit(function)
            except ThreadsFull as full:
                raise self._no_thread(full) from full
        answer = await self._result(deadline, work)
        if not self._implementation.is_async and is_awaitable(answer):
            # A plain function that returns the coroutine of another.
            coroutine = contained(lambda: answer, self.loop_time, deadline.held_loop)
            answer = await self._result(deadline, loop.create_task(coroutine))
        return answer

    async def _accepted(self, accept: Accept, answer: Any) -> Any:
        try:
            return await accept(answer)
        except TooManyRequests:
            raise
        except ListingFailed as error:
            raise PluginFailed(self.name, error.message, reason="plugin_topics", code=error.code) from error
        except Exception as error:
            # Its fields were set past all checks.
            raise PluginFailed(
                self.name,
                f"gave an answer that cannot be read: {in_words(error)}",
                reason="plugin_answer",
            ) from error

    async def _result(self, deadline: Deadline, work: asyncio.Future[Any]) -> Any:
        try:
            in_time = await deadline.wait(work)
        except asyncio.CancelledError:
            self._left.leave(work)
            raise
        if not in_time:
            self._left.leave(work)
            late = f"did not answer within {self._deadline:g} s"
            if deadline.overrun:
                late += (
                    ", and held the event loop: its hook should be a plain function, which runs in a thread"
                )
            raise PluginFailed(self.name, late, reason="plugin_deadline")
        if work.cancelled():
            raise PluginFailed(self.name, "failed: CancelledError", reason="plugin_error")
        error = work.exception()
        if error is None:
            return work.result()
        if is_a(error, ThreadsFull):
            assert isinstance(error, ThreadsFull)
            raise self._no_thread(error) from error
        error = plain(error)
        told = said(error)
        if told is not None and deadline.raised(error):
            raise error
        if told is not None and is_a(error, TooManyRequests):
            # As if the broker said so; with a reason of the broker's, since reasons are labels of metrics.
            raise TooManyRequests(told.message, reason="plugin_error") from error
        raise self._raised(error) from error

    def _no_thread(self, full: ThreadsFull) -> PluginFailed:
        return PluginFailed(self.name, f"has no free thread: {full}", reason="plugin_threads")

    def _raised(self, error: BaseException) -> PluginFailed:
        told = said(error)
        if told is not None:  # the plugin says itself what the client is to know
            return PluginFailed(
                self.name,
                f"failed: {told.message}",
                reason="plugin_error",
                code=told.code,
                counts=told.counts,
            )
        return PluginFailed(
            self.name,
            f"failed: {kind(error)}",
            reason="plugin_error",
            detail=f"plugin {self.name!r} failed: {in_words(error)}",
        )

    def _not_called(self, reason: str, message: str) -> PluginFailed:
        failure = PluginFailed(self.name, message, reason=reason)
        self.statistics.failed(reason, failure.detail, None)
        if self._on_call is not None:
            self._on_call(self.name, self.hook, "error", None)
        return failure

    def _failed(self, failure: PluginFailed, admission: Admission, started: float, now: float) -> None:
        opened = self.breaker.opened
        if failure.counts:
            self.breaker.failed(admission, now)
        else:
            self.breaker.undecided(admission)
        self.statistics.failed(failure.reason, failure.detail, now - started)
        if self._on_call is not None:
            self._on_call(self.name, self.hook, "error", now - started)
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
            **_traceback(failure),
        )
        self._next_log = now + _LOG_EVERY
        self._not_logged = 0


def _traceback(failure: PluginFailed) -> dict[str, str]:
    """What the author of a plugin needs to find what raised.

    As text, since renderers that make more of an exception take a good part of a second on the event loop, and show the
    values of local variables, which may be secrets. A :exc:`~broker_core.errors.ListingFailed` needs none: the plugin
    raised it on purpose, to say in words what is wrong.
    """
    cause = failure.__cause__
    if failure.reason != "plugin_error" or cause is None or said(cause) is not None:
        return {}
    return {"exception": trace(cause)}
